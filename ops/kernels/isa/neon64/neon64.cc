// The instruction set of 64-bit NEON. Staging broadcasts each 16-bit half-word of the input to a vector. The sums of
// four pixels by 32 channels are computed at a time (sum_windows.h). If fewer than four pixels remain, they are
// computed one by one.
#include "kernels/isa/isa.h"

#if defined(__aarch64__)

#include <cstring>

#include "kernels/isa/neon64/sum_windows.h"
#include "kernels/isa/shared/float_pixels.h"
#include "kernels/isa/shared/int8/max_window.h"
#include "kernels/isa/shared/int8/neon_conv.h"
#include "kernels/isa/shared/neon64.h"
#include "kernels/isa/shared/output.h"
#include "kernels/isa/shared/pixel_walk.h"
#include "kernels/platform/arm_cpu.h"

namespace litebnn {
namespace {

// The number of output pixels in a block. All channels of a block are computed before the next block, so that the
// windows of its pixels stay in the L1 cache. A block may have more pixels if their windows fit kBlockBytes.
constexpr int64_t kBlockPixels = 64;
constexpr int64_t kBlockBytes = 8192;
// The maximum size in bytes of a block of staged (broadcast) pixels, for convolutions whose windows are single pixels.
// The block then stays in the L1 cache.
constexpr int32_t kStagedBlockBytes = 16384;

size_t StagedBytes(int32_t tap_words) { return kStagedWordBytes * static_cast<size_t>(tap_words); }

void Stage(const uint32_t* words, int64_t taps, int32_t tap_words, uint8_t* staged) {
  int64_t count = taps * tap_words;
  const auto* halves = reinterpret_cast<const uint16_t*>(words);
  auto* out = reinterpret_cast<uint16_t*>(staged);
  // The loop body is in assembly, because the compiler would use separate instructions to advance the pointers.
  const auto stage_two = [&] {
    __asm__ volatile(
        "ld4r {v0.8h, v1.8h, v2.8h, v3.8h}, [%0], #8\n"
        "st1 {v0.8h, v1.8h, v2.8h, v3.8h}, [%1], #64\n"
        : "+r"(halves), "+r"(out)
        :
        : "v0", "v1", "v2", "v3", "memory");
  };
#pragma GCC unroll 4
  for (; count >= 2; count -= 2) stage_two();
  if (count > 0) vst1q_u16_x2(out, vld2q_dup_u16(halves));
}

// ChunkLoops has the inner loops for chunks of `words` words: one for out-of-order cores, then one for in-order cores.
struct ChunkLoops {
  int32_t words;
  SumWindowsLoop* loops[2];
};
constexpr ChunkLoops kChunkLoops[] = {
    {6, {litebnn_sum_windows_6, litebnn_sum_windows_in_order_6}},
    {3, {litebnn_sum_windows_3, litebnn_sum_windows_in_order_3}},
    {2, {litebnn_sum_windows_2, litebnn_sum_windows_in_order_2}},
    {1, {litebnn_sum_windows_1, litebnn_sum_windows_in_order_1}},
};

// A Plan has the inner loop for a layer. For each chunk (a fixed number of words) of a window, it also has the number
// of bytes by which the window pointers then advance.
struct Plan {
  Plan(const BconvTask& task, bool in_order, void* memory) : increments(static_cast<int64_t*>(memory)) {
    const ChunkLoops* chunk = kChunkLoops;
    while (task.run_words % chunk->words != 0) ++chunk;
    loop = chunk->loops[in_order];
    chunk_words = chunk->words;
    // After each chunk of the windows, the out-of-order loop has advanced its window pointers to the chunk's last word.
    // The in-order loop has left its pointers at the chunk's first word.
    const ptrdiff_t moved = in_order ? 0 : ptrdiff_t{chunk->words - 1} * kStagedWordBytes;
    int64_t* increment = increments;
    ptrdiff_t position = 0;
    for (int32_t run = 0; run < task.runs; ++run) {
      for (int32_t word = 0; word < task.run_words; word += chunk->words) {
        const ptrdiff_t start = task.run_offsets[run] + static_cast<ptrdiff_t>(word) * kStagedWordBytes;
        if (run > 0 || word > 0) *increment++ = start - position - moved;
        position = start;
      }
    }
    *increment = 0;
    const ptrdiff_t piece_chunks = PieceWords() / chunk_words;
    for (int64_t* last = increments + piece_chunks - 1; last < increment; last += piece_chunks) *last = 0;
  }

  // A long window is summed in pieces of PieceWords() words. IncrementsFrom(word) returns the increments of the window
  // pointers for the piece that begins at `word`.
  int32_t PieceWords() const { return kMaxWords / chunk_words * chunk_words; }
  const int64_t* IncrementsFrom(int32_t word) const { return increments + word / chunk_words; }

  SumWindowsLoop* loop;
  int64_t* increments;
  int32_t chunk_words;
};

int32_t StagedBlockPixels(int32_t words) {
  const int64_t pixels = kStagedBlockBytes / (int64_t{words} * kStagedWordBytes) / kTilePixels * kTilePixels;
  return static_cast<int32_t>(Min<int64_t>(Max<int64_t>(pixels, kTilePixels), kBlockPixels));
}

size_t PlanBytes(int32_t words) { return (static_cast<size_t>(words) * sizeof(int64_t) + 63) / 64 * 64; }

// The scratch memory of a thread begins with a Plan's increments, by which the window pointers advance after each chunk
// of words. A block of staged (broadcast) pixels follows.
size_t ScratchBytes(int32_t words) {
  const auto word_bytes = static_cast<size_t>(words) * kStagedWordBytes;
  return PlanBytes(words) + static_cast<size_t>(StagedBlockPixels(words)) * word_bytes;
}

// Computes the sums of one pixel. The function is for the last pixels, which do not fill a tile of four.
void SumWindow(const BconvTask& task, const uint8_t* window, const uint8_t* weights, uint16x8_t* sums) {
  uint16x8_t wide[kTileVectors] = {};
  for (int32_t run = 0; run < task.runs; ++run) {
    const uint8_t* input = window + task.run_offsets[run];
    for (int32_t word = 0; word < task.run_words; ++word, input += kStagedWordBytes, weights += kWeightsWordBytes) {
      const uint8x16x2_t x = vld1q_u8_x2(input);
      const uint8x16x4_t w0 = vld1q_u8_x4(weights), w1 = vld1q_u8_x4(weights + kWeightsWordBytes / 2);
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) {
        const uint8x16_t first = vcntq_u8(veorq_u8(x.val[0], w0.val[v]));
        wide[v] = vpadalq_u8(wide[v], vaddq_u8(first, vcntq_u8(veorq_u8(x.val[1], w1.val[v]))));
      }
    }
  }
  for (int v = 0; v < kTileVectors; ++v) sums[v] = wide[v];
}

// Converts the sums of one vector of channels to dot products as floats. With kRelu, the dot products are clamped at 0.
template <bool kRelu>
__attribute__((always_inline)) inline void FloatDots(int32_t depth, uint16x8_t sums, float32x4_t& low,
                                                     float32x4_t& high) {
  if (kRelu) {
    // A saturating subtraction clamps at 0, which is the RELU. The subtraction computes half the dot product, which
    // fits 16 bits; the widening shift doubles it.
    const uint16x8_t half = vqsubq_u16(vdupq_n_u16(static_cast<uint16_t>(depth / 2)), sums);
    low = vcvtq_f32_u32(vshll_n_u16(vget_low_u16(half), 1));
    high = vcvtq_f32_u32(vshll_high_n_u16(half, 1));
  } else {
    // An integer n in the mantissa of the float 2^23 gives the float 2^23 + n. The difference of two such floats is
    // exact.
    constexpr float kTwoTo23 = 8388608.0f;
    const uint32x4_t bits = vreinterpretq_u32_f32(vdupq_n_f32(kTwoTo23));
    const float32x4_t depths = vdupq_n_f32(kTwoTo23 + static_cast<float>(depth));
    const uint16x8_t twice = vshlq_n_u16(sums, 1);
    low = vsubq_f32(depths, vreinterpretq_f32_u32(vaddw_u16(bits, vget_low_u16(twice))));
    high = vsubq_f32(depths, vreinterpretq_f32_u32(vaddw_high_u16(bits, twice)));
  }
}

// Writes float32 or int8 outputs with RELU or no activation, which are the most common cases. The function writes one
// tile of pixels after the other.
template <bool kRelu, typename Epilogue>
struct FloatWriter {
  const BconvTask& task;
  int64_t first_pixel;
  int32_t channel;
  // The following members are copies of the task's values. They can stay in registers, because no store to the outputs
  // can modify them.
  const Epilogue epilogue{task};
  const int32_t depth = task.depth;
  const int64_t stride = task.output_channels;
  typename Epilogue::Value* const outputs = static_cast<typename Epilogue::Value*>(task.output);
  typename Epilogue::Value* output = outputs + OutputIndex(task, first_pixel, channel);  // first pixel of the next tile
  const float* const multiplier = task.multiplier + channel;
  const float* const bias = task.bias + channel;

  __attribute__((always_inline)) void operator()(const uint16x8_t (&sums)[kTilePixels][kTileVectors]) {
    WriteVector<0>(sums);
    WriteVector<1>(sums);
    WriteVector<2>(sums);
    WriteVector<3>(sums);
    output += kTilePixels * stride;
  }

  template <int kVector>
  __attribute__((always_inline)) void WriteVector(const uint16x8_t (&sums)[kTilePixels][kTileVectors]) const {
    constexpr int kFirst = kVector * kVectorChannels;
    float32x4_t low_multiplier, high_multiplier, low_bias, high_bias;
    LoadPair<kFirst>(multiplier, low_multiplier, high_multiplier);
    LoadPair<kFirst>(bias, low_bias, high_bias);
    const auto &low_epilogue = epilogue(channel + kFirst), &high_epilogue = epilogue(channel + kFirst + 4);
#pragma GCC unroll 4
    for (int p = 0; p < kTilePixels; ++p) {
      float32x4_t low, high;
      FloatDots<kRelu>(depth, sums[p][kVector], low, high);
      low = vaddq_f32(vmulq_f32(low, low_multiplier), low_bias);
      high = vaddq_f32(vmulq_f32(high, high_multiplier), high_bias);
      typename Epilogue::Value* const pixel = output + p * stride;
      const ptrdiff_t index = pixel - outputs + kFirst;
      StoreOutputs<kFirst>(low_epilogue, high_epilogue, low, high, pixel, index);
    }
  }
};

// The function is not inlined, because the inlined code would take registers away from the sums.
__attribute__((noinline)) void WritePixel(const BconvTask& task, int64_t pixel, int32_t channel, int32_t channels,
                                          const uint16x8_t* sums) {
  WriteOutputs<FourLanes, kTileChannels>(task, pixel, channel, channels, reinterpret_cast<const uint16_t*>(sums));
}

// The function is not inlined. Each instance of the template (one for each type of Writer) then saves and restores only
// the registers that it needs.
template <typename Writer>
__attribute__((noinline)) void WriteTiles(const Plan& plan, WindowWalk& walk, const uint8_t* weights, int64_t tiles,
                                          Writer writer) {
  for (; tiles > 0; --tiles) {
    const uint8_t* windows[kTilePixels];
    walk.Next<kTilePixels>(windows);
    uint16x8_t sums[kTilePixels][kTileVectors];
    SumWindows(plan.loop, windows, weights, plan.increments, sums);
    writer(sums);
  }
}

// Computes a channel tile of pixels whose windows are too long for 16-bit sums. If fewer than a tile of pixels are
// left, the last one is repeated.
__attribute__((noinline)) void WriteLongTiles(const BconvTask& task, const Plan& plan, WindowWalk& walk,
                                              const uint8_t* weights, int64_t pixel, int64_t pixel_end, int32_t channel,
                                              int32_t channels) {
  const int32_t words = task.runs * task.run_words;
  for (; pixel < pixel_end; pixel += kTilePixels) {
    const auto pixels = static_cast<int32_t>(Min<int64_t>(kTilePixels, pixel_end - pixel));
    const uint8_t* windows[kTilePixels];
    for (int p = 0; p < kTilePixels; ++p) windows[p] = p < pixels ? walk.Next() : windows[p - 1];
    int32_t popcounts[kTilePixels][kTileChannels] = {};
    for (int32_t word = 0; word < words; word += plan.PieceWords()) {
      const ptrdiff_t first =
          task.run_offsets[word / task.run_words] + ptrdiff_t{word % task.run_words} * kStagedWordBytes;
      const uint8_t* pieces[kTilePixels];
      for (int p = 0; p < kTilePixels; ++p) pieces[p] = windows[p] + first;
      uint16x8_t sums[kTilePixels][kTileVectors];
      SumWindows(plan.loop, pieces, weights + ptrdiff_t{word} * kWeightsWordBytes, plan.IncrementsFrom(word), sums);
      for (int p = 0; p < kTilePixels; ++p) AddPiece(sums[p], popcounts[p]);
    }
    for (int p = 0; p < pixels; ++p) WriteOutputs<FourLanes>(task, pixel + p, channel, channels, popcounts[p]);
  }
}

// Computes all channel tiles of a block of pixels. `windows` starts at the window of the block's first pixel.
void BconvBlock(const BconvTask& task, const Plan& plan, const WindowWalk& windows, int64_t pixel_begin,
                int64_t pixel_end, int32_t channel_begin, int32_t channel_end) {
  const bool has_simple_outputs =
      task.epilogue_kind != EpilogueKind::kBits && task.corrections == nullptr && !HasExceptions(task);
  const bool relu = task.clamp_min == 0 && task.clamp_max == INT32_MAX && task.depth % 2 == 0;
  const bool linear = task.clamp_min == INT32_MIN && task.depth <= INT16_MAX;
  const bool is_long = task.runs * task.run_words > kMaxWords;
  const int64_t tiles = (pixel_end - pixel_begin) / kTilePixels;
  for (int32_t channel = channel_begin; channel < channel_end; channel += kTileChannels) {
    const int32_t channels = Min(kTileChannels, channel_end - channel);
    const uint8_t* weights = task.weights + Weights::Bytes(channel, task.runs * task.run_words);
    WindowWalk walk = windows;
    if (is_long) {
      WriteLongTiles(task, plan, walk, weights, pixel_begin, pixel_end, channel, channels);
      continue;
    }
    if (has_simple_outputs && (relu || linear) && channels == kTileChannels) {
      WithPairEpilogue(task, [&](auto epilogue) {
        using Epilogue = decltype(epilogue);
        relu ? WriteTiles(plan, walk, weights, tiles, FloatWriter<true, Epilogue>{task, pixel_begin, channel})
             : WriteTiles(plan, walk, weights, tiles, FloatWriter<false, Epilogue>{task, pixel_begin, channel});
      });
    } else {
      WriteTiles(plan, walk, weights, tiles, [&, pixel = pixel_begin](const auto& sums) mutable {
        for (int p = 0; p < kTilePixels; ++p) WritePixel(task, pixel++, channel, channels, sums[p]);
      });
    }
    for (int64_t pixel = pixel_begin + tiles * kTilePixels; pixel < pixel_end; ++pixel) {
      uint16x8_t sums[kTileVectors];
      SumWindow(task, walk.Next(), weights, sums);
      WritePixel(task, pixel, channel, channels, sums);
    }
  }
}

template <bool kInOrder>
void Bconv(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin, int32_t channel_end) {
  const int32_t words = task.runs * task.run_words;
  const Plan plan(task, kInOrder, task.scratch);
  auto* const staged = static_cast<uint8_t*>(task.scratch) + PlanBytes(words);
  const int64_t small_pixels = kBlockBytes / task.pixel_stride / kTilePixels * kTilePixels;
  const int64_t block_pixels = task.is_staged ? Max(kBlockPixels, small_pixels) : StagedBlockPixels(words);
  for (int64_t block = pixel_begin; block < pixel_end; block += block_pixels) {
    const int64_t block_end = Min(block + block_pixels, pixel_end);
    if (task.is_staged) {
      BconvBlock(task, plan, WindowWalk{task, block}, block, block_end, channel_begin, channel_end);
    } else {
      Stage(reinterpret_cast<const uint32_t*>(task.input) + block * words, block_end - block, words, staged);
      BconvTask staged_block = task;
      staged_block.input = staged;
      BconvBlock(task, plan, WindowWalk{staged_block, 0}, block, block_end, channel_begin, channel_end);
    }
  }
}

bool Available() { return true; }
bool CpuIsOutOfOrder() { return CpuCores() == ArmCores::kOutOfOrder; }
bool CpuIsInOrder() { return CpuCores() == ArmCores::kInOrder; }

// Returns the ISA for in-order or for out-of-order cores. The two ISAs differ only in their inner loops.
constexpr Isa Neon64(const char* name, decltype(Isa::bconv) bconv, decltype(Isa::suits) suits) {
  return {
      .name = name,
      .available = Available,
      .pack_float32_signs = PackFloat32SignsByFours,
      .pack_int8_signs = PackInt8Signs<FourLanes>,
      .pack_int8_comparisons = PackInt8Comparisons<FourLanes>,
      .pack_affine_signs = PackAffineSigns<FourLanes>,
      .max_window = MaxWindow<FourLanes>,
      .max_int8_window = MaxInt8Window,
      .gate_pixels = GatePixels<FourLanes>,
      .tile_pixels = kTilePixels,
      .tile_channels = kTileChannels,
      .macs_per_cycle = 85,
      .staged_bytes = StagedBytes,
      .stage = Stage,
      .stages_pixels = true,
      .packed_weights_bytes = Weights::PackedBytes,
      .pack_weights = Weights::Pack,
      .scratch_bytes = ScratchBytes,
      .bconv = bconv,
      .int8_conv = Neon64Int8Conv,
      .suits = suits,
  };
}

}  // namespace

const Isa kNeon64Isa = Neon64("neon64", Bconv<false>, CpuIsOutOfOrder);
const Isa kNeon64InOrderIsa = Neon64("neon64_in_order", Bconv<true>, CpuIsInOrder);

// Int8 convolutions without dot product instructions; int8_conv_dot.cc has those with them.
const Int8ConvKernel kNeon64Int8Conv = {
    .vector_channels = LongDots::kLanes,
    .lane_taps = 2,
    .tap_bytes = 1,
    .offset = 0,
    .macs_per_cycle = 8,
    .rows = Int8ConvRows<LongDots, 4, 4>,
};

const Int8ConvKernel& Neon64Int8Conv() { return CpuHasDotProducts() ? kNeon64DotInt8Conv : kNeon64Int8Conv; }

}  // namespace litebnn

#endif  // __aarch64__
