// 64-bit NEON. The input is staged with each 16 bits copied to the lanes of a vector; four pixels by 32 channels are
// summed up at a time (sum_windows.h), what is left of the pixels one by one.
#include "kernels/isa/isa.h"

#if defined(__aarch64__)

#include <cstring>

#include "kernels/isa/neon64/pack_signs.h"
#include "kernels/isa/neon64/sum_windows.h"
#include "kernels/isa/shared/max_window.h"
#include "kernels/isa/shared/neon_floats.h"
#include "kernels/isa/shared/output.h"
#include "kernels/isa/shared/pixel_walk.h"
#include "kernels/platform/arm_cpu.h"

namespace litebnn {
namespace {

// More would overflow the 16 bit sums.
constexpr int32_t kMaxWords = 65535 / kBitsPerWord;
// Pixels whose windows stay in the L1 cache while all channels pass over them: more where a pixel is small.
constexpr int64_t kBlockPixels = 64;
constexpr int64_t kBlockBytes = 8192;
// What is staged of windows that do not overlap stays there too.
constexpr int32_t kStagedBlockBytes = 16384;

void Stage(const uint32_t* words, int64_t count, uint8_t* staged) {
  const auto* halves = reinterpret_cast<const uint16_t*>(words);
  auto* out = reinterpret_cast<uint16_t*>(staged);
  // By itself the compiler adds to the pointers apart from the loads and stores.
  const auto stage_two = [&] {
    __asm__ volatile(
        "ld4r {v0.8h, v1.8h, v2.8h, v3.8h}, [%0], #8\n"
        "st1 {v0.8h, v1.8h, v2.8h, v3.8h}, [%1], #64\n"
        : "+r"(halves), "+r"(out)
        :
        : "v0", "v1", "v2", "v3", "memory");
  };
  for (; count >= 8; count -= 8) {
    stage_two();
    stage_two();
    stage_two();
    stage_two();
  }
  for (; count >= 2; count -= 2) stage_two();
  if (count > 0) vst1q_u16_x2(out, vld2q_dup_u16(halves));
}

// Functions for chunks of so many words: [out of order, in order].
struct ChunkFunctions {
  int32_t words;
  SumWindowsFunction functions[2];
};
constexpr ChunkFunctions kChunkFunctions[] = {
    {6, {litebnn_sum_windows_6, litebnn_sum_windows_in_order_6}},
    {3, {litebnn_sum_windows_3, litebnn_sum_windows_in_order_3}},
    {2, {litebnn_sum_windows_2, litebnn_sum_windows_in_order_2}},
    {1, {litebnn_sum_windows_1, litebnn_sum_windows_in_order_1}},
};

// How windows are read: by which function, and the ways between the chunks that it takes.
struct Plan {
  Plan(const BconvTask& task, bool in_order, void* memory) : steps(static_cast<int64_t*>(memory)) {
    const ChunkFunctions* chunk = kChunkFunctions;
    while (task.run_words % chunk->words != 0) ++chunk;
    function = chunk->functions[in_order];
    // At the end of a chunk the pointer is at its first word where cores are in order, else at its last.
    const ptrdiff_t moved = in_order ? 0 : ptrdiff_t{chunk->words - 1} * kStagedWordBytes;
    int64_t* step = steps;
    ptrdiff_t position = 0;
    for (int32_t run = 0; run < task.runs; ++run) {
      for (int32_t word = 0; word < task.run_words; word += chunk->words) {
        const ptrdiff_t start = task.run_offsets[run] + static_cast<ptrdiff_t>(word) * kStagedWordBytes;
        if (run > 0 || word > 0) *step++ = start - position - moved;
        position = start;
      }
    }
    *step = 0;
  }

  SumWindowsFunction function;
  int64_t* steps;
};

int32_t StagedBlockPixels(int32_t words) {
  const int32_t pixels = kStagedBlockBytes / (words * kStagedWordBytes) / kTilePixels * kTilePixels;
  return std::min(std::max(pixels, kTilePixels), static_cast<int32_t>(kBlockPixels));
}

size_t PlanBytes(int32_t words) { return (static_cast<size_t>(words) * sizeof(int64_t) + 63) / 64 * 64; }

// A plan, then a staged block.
size_t ScratchBytes(int32_t words) {
  const auto word_bytes = static_cast<size_t>(words) * kStagedWordBytes;
  return PlanBytes(words) + static_cast<size_t>(StagedBlockPixels(words)) * word_bytes;
}

// One pixel, where there are no four.
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

// Pairs at an offset of kFirst floats: the compiler does not make them where there are other loads and stores between.
template <int kFirst>
__attribute__((always_inline)) inline void LoadPair(const float* constants, float32x4_t& low, float32x4_t& high) {
  __asm__ volatile("ldp %q0, %q1, [%2, %3]" : "=w"(low), "=w"(high) : "r"(constants), "i"(kFirst * sizeof(float)));
}
template <int kFirst>
__attribute__((always_inline)) inline void StorePair(float* output, float32x4_t low, float32x4_t high) {
  __asm__ volatile("stp %q0, %q1, [%2, %3]"
                   :
                   : "w"(low), "w"(high), "r"(output), "i"(kFirst * sizeof(float))
                   : "memory");
}

enum class Addend { kNone, kAdd, kAddAndRectify };

// Writes the float32 outputs of tile after tile of pixels, with no activation or RELU: what most convolutions have.
template <bool kRelu, Addend kAddend>
class FloatWriter {
 public:
  FloatWriter(const BconvTask& task, int64_t pixel, int32_t channel)
      : depth_(task.depth),
        stride_(task.output_channels),
        output_(static_cast<float*>(task.output) + pixel * stride_ + task.first_channel + channel),
        addend_(kAddend == Addend::kNone ? nullptr : task.addend + pixel * stride_ + task.first_channel + channel),
        multiplier_(task.multiplier + channel),
        bias_(task.bias + channel) {}

  __attribute__((always_inline)) void Write(const uint16x8_t (&sums)[kTilePixels][kTileVectors]) {
    WriteVector<0>(sums);
    WriteVector<1>(sums);
    WriteVector<2>(sums);
    WriteVector<3>(sums);
    output_ += kTilePixels * stride_;
    if (kAddend != Addend::kNone) addend_ += kTilePixels * stride_;
  }

 private:
  template <int kVector>
  __attribute__((always_inline)) void WriteVector(const uint16x8_t (&sums)[kTilePixels][kTileVectors]) const {
    constexpr int kFirst = kVector * kVectorChannels;
    float32x4_t low_multiplier, high_multiplier, low_bias, high_bias;
    LoadPair<kFirst>(multiplier_, low_multiplier, high_multiplier);
    LoadPair<kFirst>(bias_, low_bias, high_bias);
#pragma GCC unroll 4
    for (int p = 0; p < kTilePixels; ++p) {
      float32x4_t low, high;
      Dots(sums[p][kVector], low, high);
      low = vaddq_f32(vmulq_f32(low, low_multiplier), low_bias);
      high = vaddq_f32(vmulq_f32(high, high_multiplier), high_bias);
      if (kAddend != Addend::kNone) {
        const float* const addend = addend_ + p * stride_ + kFirst;
        low = vaddq_f32(low, vld1q_f32(addend));
        high = vaddq_f32(high, vld1q_f32(addend + 4));
      }
      if (kAddend == Addend::kAddAndRectify) {
        low = vmaxnmq_f32(low, vdupq_n_f32(0.0f));
        high = vmaxnmq_f32(high, vdupq_n_f32(0.0f));
      }
      StorePair<kFirst>(output_ + p * stride_, low, high);
    }
  }

  __attribute__((always_inline)) void Dots(uint16x8_t sums, float32x4_t& low, float32x4_t& high) const {
    if (kRelu) {
      // A subtraction that stops at zero is the activation too. Widening doubles the half.
      const uint16x8_t half = vqsubq_u16(vdupq_n_u16(static_cast<uint16_t>(depth_ / 2)), sums);
      low = vcvtq_f32_u32(vshll_n_u16(vget_low_u16(half), 1));
      high = vcvtq_f32_u32(vshll_high_n_u16(half, 1));
    } else {
      // 2^23 plus an integer below it has that integer as its last bits, and the difference of two such is exact.
      constexpr float kTwoTo23 = 8388608.0f;
      const uint32x4_t bits = vreinterpretq_u32_f32(vdupq_n_f32(kTwoTo23));
      const float32x4_t depth = vdupq_n_f32(kTwoTo23 + static_cast<float>(depth_));
      const uint16x8_t twice = vshlq_n_u16(sums, 1);
      low = vsubq_f32(depth, vreinterpretq_f32_u32(vaddw_u16(bits, vget_low_u16(twice))));
      high = vsubq_f32(depth, vreinterpretq_f32_u32(vaddw_high_u16(bits, twice)));
    }
  }

  const int32_t depth_;
  const int64_t stride_;
  // Of the next tile's first pixel.
  float* output_;
  const float* addend_;
  const float* const multiplier_;
  const float* const bias_;
};

// Any outputs of one pixel and one tile of channels. The vectors do what output.h does, in the same order.
struct PixelOutputs {
  const BconvTask& task;
  int64_t pixel;
  int32_t channel;
  const uint16x8_t* sums;

  __attribute__((noinline)) void Write(int32_t channels) const {
    if (channels < kTileChannels) {
      return WriteChannels(task, pixel, channel, channels, reinterpret_cast<const uint16_t*>(sums));
    }
    switch (task.output_type) {
      case Bconv2dOutputType::kFloat32:
        return Float32();
      case Bconv2dOutputType::kInt8:
        return Int8();
      case Bconv2dOutputType::kBitpacked:
        return Bits();
    }
  }

  int64_t Index() const { return pixel * task.output_channels + task.first_channel + channel; }
  const int32_t* Corrections() const {
    return task.corrections == nullptr ? nullptr : CorrectionsOf(task, pixel) + channel;
  }

  // Calls store(channel of the tile, the values of 4).
  template <typename Store>
  void ForEachFour(Store store) const {
    const int32x4_t depth = vdupq_n_s32(task.depth);
    const int32x4_t clamp_min = vdupq_n_s32(task.clamp_min), clamp_max = vdupq_n_s32(task.clamp_max);
    const int32_t* const corrections = Corrections();
    const float* const multipliers = task.multiplier + channel;
    const float* const biases = task.bias + channel;
    const auto* four_sums = reinterpret_cast<const uint16_t*>(sums);
    for (int i = 0; i < kTileChannels; i += 4) {
      int32x4_t dots = vsubq_s32(depth, vreinterpretq_s32_u32(vshll_n_u16(vld1_u16(four_sums + i), 1)));
      if (corrections != nullptr) dots = vaddq_s32(dots, vld1q_s32(corrections + i));
      const float32x4_t values = vcvtq_f32_s32(vminq_s32(vmaxq_s32(dots, clamp_min), clamp_max));
      store(i, vaddq_f32(vmulq_f32(values, vld1q_f32(multipliers + i)), vld1q_f32(biases + i)));
    }
  }

  void Float32() const {
    float* const output = static_cast<float*>(task.output) + Index();
    const float* const addend = task.addend == nullptr ? nullptr : task.addend + Index();
    const bool rectify_sum = task.rectify_sum;
    ForEachFour([=](int i, float32x4_t values) {
      if (addend != nullptr) {
        values = vaddq_f32(values, vld1q_f32(addend + i));
        if (rectify_sum) values = vmaxnmq_f32(values, vdupq_n_f32(0.0f));
      }
      vst1q_f32(output + i, values);
    });
  }

  void Int8() const {
    const float32x4_t lowest = vdupq_n_f32(static_cast<float>(-128 - task.zero_point));
    const float32x4_t highest = vdupq_n_f32(static_cast<float>(127 - task.zero_point));
    const int16x4_t zero_point = vdup_n_s16(static_cast<int16_t>(task.zero_point));
    int8_t* const output = static_cast<int8_t*>(task.output) + Index();
    ForEachFour([=](int i, float32x4_t values) {
      // Takes the number where the other is NaN; converts by rounding half away from zero.
      const int32x4_t rounded = vcvtaq_s32_f32(vminnmq_f32(vmaxnmq_f32(values, lowest), highest));
      const int16x4_t shifted = vadd_s16(vmovn_s32(rounded), zero_point);
      const int8x8_t bytes = vmovn_s16(vcombine_s16(shifted, shifted));
      const int32_t four = vget_lane_s32(vreinterpret_s32_s8(bytes), 0);
      std::memcpy(output + i, &four, sizeof(four));
    });
  }

  void Bits() const {
    constexpr uint16_t kLaneBits[kVectorChannels] = {1, 2, 4, 8, 16, 32, 64, 128};
    const uint16x8_t lane_bits = vld1q_u16(kLaneBits);
    const int32_t* const corrections = Corrections();
    uint32_t word = 0;
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) {
      const int first = v * kVectorChannels;
      const int32_t* const threshold = task.threshold + channel + first;
      int32x4_t low = vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(sums[v])));
      int32x4_t high = vreinterpretq_s32_u32(vmovl_high_u16(sums[v]));
      if (corrections != nullptr) {
        // Halves of even numbers, exact in either direction.
        low = vsubq_s32(low, vshrq_n_s32(vld1q_s32(corrections + first), 1));
        high = vsubq_s32(high, vshrq_n_s32(vld1q_s32(corrections + first + 4), 1));
      }
      const uint16x8_t above = vuzp1q_u16(vreinterpretq_u16_u32(vcgtq_s32(low, vld1q_s32(threshold))),
                                          vreinterpretq_u16_u32(vcgtq_s32(high, vld1q_s32(threshold + 4))));
      word |= static_cast<uint32_t>(vaddvq_u16(vandq_u16(above, lane_bits))) << first;
    }
    uint32_t* const words = static_cast<uint32_t*>(task.output) + pixel * PackedWords(task.output_channels);
    StoreBits(words, task.first_channel + channel, kBitsPerWord, word);
  }
};

// Writes outputs of every kind.
class AnyWriter {
 public:
  AnyWriter(const BconvTask& task, int64_t pixel, int32_t channel, int32_t channels)
      : task_(task), pixel_(pixel), channel_(channel), channels_(channels) {}

  void Write(const uint16x8_t (&sums)[kTilePixels][kTileVectors]) {
    for (int p = 0; p < kTilePixels; ++p, ++pixel_) PixelOutputs{task_, pixel_, channel_, sums[p]}.Write(channels_);
  }

 private:
  const BconvTask& task_;
  int64_t pixel_;
  const int32_t channel_, channels_;
};

template <typename Writer>
void WriteTiles(const Plan& plan, WindowWalk& walk, const uint8_t* weights, int64_t tiles, Writer writer) {
  for (; tiles > 0; --tiles) {
    const uint8_t* windows[kTilePixels];
    walk.Next<kTilePixels>(windows);
    uint16x8_t sums[kTilePixels][kTileVectors];
    SumWindows(plan.function, windows, weights, plan.steps, sums);
    writer.Write(sums);
  }
}

template <bool kRelu>
void WriteFloatTiles(const BconvTask& task, const Plan& plan, WindowWalk& walk, const uint8_t* weights, int64_t pixel,
                     int64_t tiles, int32_t channel) {
  if (task.addend == nullptr) {
    WriteTiles(plan, walk, weights, tiles, FloatWriter<kRelu, Addend::kNone>(task, pixel, channel));
  } else if (!task.rectify_sum) {
    WriteTiles(plan, walk, weights, tiles, FloatWriter<kRelu, Addend::kAdd>(task, pixel, channel));
  } else {
    WriteTiles(plan, walk, weights, tiles, FloatWriter<kRelu, Addend::kAddAndRectify>(task, pixel, channel));
  }
}

// Tiles of channels of some pixels, whose windows come with `walk`.
void BconvBlock(const BconvTask& task, const Plan& plan, const WindowWalk& windows, int64_t pixel_begin,
                int64_t pixel_end, int32_t channel_begin, int32_t channel_end) {
  const bool simple_floats = task.output_type == Bconv2dOutputType::kFloat32 && task.corrections == nullptr;
  const bool relu = task.clamp_min == 0 && task.clamp_max == INT32_MAX && task.depth % 2 == 0;
  const bool linear = task.clamp_min == INT32_MIN && task.depth <= INT16_MAX;
  const ptrdiff_t tile_bytes = static_cast<ptrdiff_t>(task.runs) * task.run_words * kWeightsWordBytes;
  const int64_t tiles = (pixel_end - pixel_begin) / kTilePixels;
  for (int32_t channel = channel_begin; channel < channel_end; channel += kTileChannels) {
    const int32_t channels = std::min(kTileChannels, channel_end - channel);
    const uint8_t* weights = task.weights + channel / kTileChannels * tile_bytes;
    WindowWalk walk = windows;
    if (simple_floats && relu && channels == kTileChannels) {
      WriteFloatTiles<true>(task, plan, walk, weights, pixel_begin, tiles, channel);
    } else if (simple_floats && linear && channels == kTileChannels) {
      WriteFloatTiles<false>(task, plan, walk, weights, pixel_begin, tiles, channel);
    } else {
      WriteTiles(plan, walk, weights, tiles, AnyWriter(task, pixel_begin, channel, channels));
    }
    for (int64_t pixel = pixel_begin + tiles * kTilePixels; pixel < pixel_end; ++pixel) {
      uint16x8_t sums[kTileVectors];
      SumWindow(task, walk.Next(), weights, sums);
      PixelOutputs{task, pixel, channel, sums}.Write(channels);
    }
  }
}

void Bconv(const BconvTask& task, bool in_order, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin,
           int32_t channel_end) {
  const int32_t words = task.runs * task.run_words;
  const Plan plan(task, in_order, task.scratch);
  auto* const staged = static_cast<uint8_t*>(task.scratch) + PlanBytes(words);
  const int64_t small_pixels = kBlockBytes / task.pixel_stride / kTilePixels * kTilePixels;
  const int64_t block_pixels = task.is_staged ? std::max(kBlockPixels, small_pixels) : StagedBlockPixels(words);
  for (int64_t block = pixel_begin; block < pixel_end; block += block_pixels) {
    const int64_t block_end = std::min(block + block_pixels, pixel_end);
    if (task.is_staged) {
      BconvBlock(task, plan, WindowWalk(task, block), block, block_end, channel_begin, channel_end);
    } else {
      Stage(reinterpret_cast<const uint32_t*>(task.input) + block * words, (block_end - block) * words, staged);
      BconvTask staged_block = task;
      staged_block.input = staged;
      BconvBlock(task, plan, WindowWalk(staged_block, 0), block, block_end, channel_begin, channel_end);
    }
  }
}

void BconvOutOfOrder(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin,
                     int32_t channel_end) {
  Bconv(task, false, pixel_begin, pixel_end, channel_begin, channel_end);
}

void BconvInOrder(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin,
                  int32_t channel_end) {
  Bconv(task, true, pixel_begin, pixel_end, channel_begin, channel_end);
}

bool Available() { return true; }
bool CpuIsOutOfOrder() { return !CpuIsInOrder(); }

// Both differ in their loops alone.
constexpr Isa Neon64(const char* name, decltype(Isa::bconv) bconv, decltype(Isa::suits) suits) {
  return {
      .name = name,
      .available = Available,
      .pack_float32_signs = PackFloat32SignsNeon64,
      .pack_int8_signs = PackInt8SignsNeon64,
      .max_window = MaxWindow<FourFloats>,
      .tile_pixels = kTilePixels,
      .tile_channels = kTileChannels,
      .staged_word_bytes = kStagedWordBytes,
      .stage = Stage,
      .packed_weights_bytes = PackedWeightsBytes,
      .pack_weights = PackWeights,
      .scratch_bytes = ScratchBytes,
      .bconv = bconv,
      .max_words = kMaxWords,
      .suits = suits,
  };
}

}  // namespace

const Isa kNeon64Isa = Neon64("neon64", BconvOutOfOrder, CpuIsOutOfOrder);
const Isa kNeon64InOrderIsa = Neon64("neon64_in_order", BconvInOrder, CpuIsInOrder);

}  // namespace litebnn

#endif  // __aarch64__
