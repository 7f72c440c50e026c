// The instruction set of 32-bit NEON computes with EOR, CNT and ADD on bytes. Each 16-bit lane of a vector belongs to
// one of 8 output channels. Each half-word of a pixel is broadcast to all lanes, so that no sum crosses lanes. A tile
// has two pixels by 32 channels, so that its sums and weights fit the 16 registers.
#include "kernels/isa/isa.h"

#if defined(__ARM_NEON) && defined(__arm__)

#include <arm_neon.h>
#include <sys/auxv.h>

#include <cstring>

#include "kernels/isa/shared/float_pixels.h"
#include "kernels/isa/shared/int8/max_window.h"
#include "kernels/isa/shared/int8/neon_conv.h"
#include "kernels/isa/shared/neon_lanes.h"
#include "kernels/isa/shared/neon_tile.h"
#include "kernels/isa/shared/output.h"
#include "kernels/isa/shared/pack_signs.h"
#include "kernels/isa/shared/pixel_walk.h"

namespace litebnn {
namespace {

constexpr int kTilePixels = 2;
// The number of words whose popcounts add up to a number that fits a byte. A byte grows by at most 8 per half-word, so
// 30 half-words reach 240.
constexpr int32_t kMaxBlockWords = 15;
// The number of output pixels in a block. All channels of a block are computed before the next block, so that the
// windows of its pixels stay in the L1 cache.
constexpr int64_t kBlockPixels = 64;

#define LITEBNN_PAIR(sum0, sum1, x, w0, w1)        \
  "veor q14, " x ", " w0 "\n veor q15, " x ", " w1 \
  "\n vcnt.8 q14, q14\n vcnt.8 q15, q15\n"         \
  "vadd.i8 %q[" sum0 "], %q[" sum0 "], q14\n vadd.i8 %q[" sum1 "], %q[" sum1 "], q15\n"
#define LITEBNN_HALF                                                                                                  \
  "vld1.8 {d16-d19}, [%[w]]!\n vld1.8 {d20-d23}, [%[w]]!\n"                                                           \
  "vld1.16 {d24[], d25[]}, [%[x0]]!\n vld1.16 {d26[], d27[]}, [%[x1]]!\n" LITEBNN_PAIR("s0", "s1", "q12", "q8", "q9") \
      LITEBNN_PAIR("s2", "s3", "q12", "q10", "q11") LITEBNN_PAIR("s4", "s5", "q13", "q8", "q9")                       \
          LITEBNN_PAIR("s6", "s7", "q13", "q10", "q11")

// Adds the popcounts of `words` words of two pixels' windows to the pixels' byte sums. The loop is in assembly, because
// compilers load the weights one register at a time.
inline void AddWords(int32_t words, const uint16_t* (&x)[2], const uint8_t*& weights,
                     uint8x16_t (&s)[2][kTileVectors]) {
  __asm__ volatile("1:\n" LITEBNN_HALF LITEBNN_HALF
                   "subs %[n], %[n], #1\n"
                   "bne 1b\n"
                   : [s0] "+w"(s[0][0]), [s1] "+w"(s[0][1]), [s2] "+w"(s[0][2]), [s3] "+w"(s[0][3]), [s4] "+w"(s[1][0]),
                     [s5] "+w"(s[1][1]), [s6] "+w"(s[1][2]), [s7] "+w"(s[1][3]), [x0] "+r"(x[0]), [x1] "+r"(x[1]),
                     [w] "+r"(weights), [n] "+r"(words)
                   :
                   : "d16", "d17", "d18", "d19", "d20", "d21", "d22", "d23", "d24", "d25", "d26", "d27", "d28", "d29",
                     "d30", "d31", "cc", "memory");
}

inline void AddWords(int32_t words, const uint16_t* (&x)[1], const uint8_t*& weights,
                     uint8x16_t (&s)[1][kTileVectors]) {
  for (int32_t half = 0; half < words * kHalvesPerWord; ++half, weights += kTileVectors * 16) {
    const uint8x16_t input = vreinterpretq_u8_u16(vld1q_dup_u16(x[0]++));
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) {
      s[0][v] = vaddq_u8(s[0][v], vcntq_u8(veorq_u8(input, vld1q_u8(weights + 16 * v))));
    }
  }
}

// Sets sums[pixel][vector] to the popcounts of kPixels pixels over at most kMaxWords words, from word `first` of their
// windows on. Afterwards `weights` points to the weights of the next word.
template <int kPixels>
void SumTile(const BconvTask& task, const uint8_t* const* windows, int32_t first, const uint8_t*& weights,
             uint16x8_t* sums) {
  for (int i = 0; i < kPixels * kTileVectors; ++i) sums[i] = vdupq_n_u16(0);
  int32_t run = first / task.run_words, run_left = task.run_words - first % task.run_words;
  const uint16_t* input[kPixels];
  const auto start_run = [&] {
    const ptrdiff_t done = (task.run_words - run_left) * static_cast<ptrdiff_t>(sizeof(uint32_t));
#pragma GCC unroll 2
    for (int p = 0; p < kPixels; ++p) {
      input[p] = reinterpret_cast<const uint16_t*>(windows[p] + task.run_offsets[run] + done);
    }
  };
  start_run();
  for (int32_t left = kMaxWords; left > 0 && run < task.runs;) {
    uint8x16_t bytes[kPixels][kTileVectors] = {};
    for (int32_t room = Min(kMaxBlockWords, left); room > 0 && run < task.runs;) {
      const int32_t words = Min(run_left, room);
      AddWords(words, input, weights, bytes);
      room -= words;
      left -= words;
      run_left -= words;
      if (run_left > 0) continue;
      run_left = task.run_words;
      if (++run < task.runs) start_run();
    }
#pragma GCC unroll 2
    for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) {
        sums[p * kTileVectors + v] = vpadalq_u8(sums[p * kTileVectors + v], bytes[p][v]);
      }
    }
  }
}

// Writes whole tiles of kPixels pixels. The function is not inlined, so that the compiler keeps the constants in
// registers.
template <int kPixels, typename Epilogue>
__attribute__((noinline)) void WriteFloats(const BconvTask& task, int64_t pixel, int32_t channel,
                                           const uint16x8_t* sums, Epilogue epilogue) {
  const int16x8_t depth = vdupq_n_s16(static_cast<int16_t>(task.depth));
  const int16x8_t clamp_min = vdupq_n_s16(static_cast<int16_t>(Max(task.clamp_min, int32_t{INT16_MIN})));
  // The pointers to constants and outputs advance, because NEON's loads and stores have no offsets.
  using Value = typename Epilogue::Value;
  Value* const all_outputs = static_cast<Value*>(task.output);
  Value* outputs[kPixels];
  for (int p = 0; p < kPixels; ++p) outputs[p] = all_outputs + OutputIndex(task, pixel + p, channel);
  const float* multipliers = task.multiplier + channel;
  const float* biases = task.bias + channel;
#pragma GCC unroll 4
  for (int v = 0; v < kTileVectors; ++v, multipliers += kVectorChannels, biases += kVectorChannels) {
    const float32x4_t multiplier[2] = {vld1q_f32(multipliers), vld1q_f32(multipliers + 4)};
    const float32x4_t bias[2] = {vld1q_f32(biases), vld1q_f32(biases + 4)};
    const int32_t first = channel + v * kVectorChannels;
    const typename Epilogue::Channels epilogues[2] = {epilogue(first), epilogue(first + 4)};
#pragma GCC unroll 2
    for (int p = 0; p < kPixels; ++p) {
      const int16x8_t twice = vreinterpretq_s16_u16(vshlq_n_u16(sums[p * kTileVectors + v], 1));
      const int16x8_t dots = vmaxq_s16(vsubq_s16(depth, twice), clamp_min);
      const int16x4_t halves[2] = {vget_low_s16(dots), vget_high_s16(dots)};
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half, outputs[p] += 4) {
        const float32x4_t product = vmulq_f32(vcvtq_f32_s32(vmovl_s16(halves[half])), multiplier[half]);
        epilogues[half].Store(vaddq_f32(product, bias[half]), outputs[p] - all_outputs);
      }
    }
  }
}

// The function is not inlined, because the inlined code would take registers away from the sums.
__attribute__((noinline)) void WritePixel(const BconvTask& task, int64_t pixel, int32_t channel, int32_t channels,
                                          const uint16x8_t* sums) {
  WriteOutputs<FourLanes>(task, pixel, channel, channels, reinterpret_cast<const uint16_t*>(sums));
}

// Computes a tile whose windows are too long for 16-bit sums. Each window is summed in pieces, whose sums are added in
// 32 bits.
template <int kPixels>
void BconvLongTile(const BconvTask& task, const uint8_t* const* windows, const uint8_t* weights, int64_t pixel,
                   int32_t channel, int32_t channels) {
  int32_t popcounts[kPixels][kTileChannels] = {};
  for (int32_t word = 0; word < task.runs * task.run_words; word += kMaxWords) {
    uint16x8_t sums[kPixels * kTileVectors];
    SumTile<kPixels>(task, windows, word, weights, sums);
    for (int p = 0; p < kPixels; ++p) AddPiece(sums + p * kTileVectors, popcounts[p]);
  }
  for (int p = 0; p < kPixels; ++p) WriteOutputs<FourLanes>(task, pixel + p, channel, channels, popcounts[p]);
}

template <int kPixels>
void BconvTile(const BconvTask& task, const uint8_t* const* windows, const uint8_t* weights, int64_t pixel,
               int32_t channel, int32_t channels) {
  if (task.runs * task.run_words > kMaxWords) {
    return BconvLongTile<kPixels>(task, windows, weights, pixel, channel, channels);
  }
  uint16x8_t sums[kPixels * kTileVectors];
  SumTile<kPixels>(task, windows, 0, weights, sums);
  // The function WriteFloats can only be used for 16-bit dot products without an upper clamp.
  const bool simple_floats = task.epilogue_kind != EpilogueKind::kBits && task.corrections == nullptr &&
                             task.clamp_max == INT32_MAX && task.depth <= INT16_MAX;
  if (channels == kTileChannels && simple_floats) {
    return WithEpilogue<FourLanes>(task,
                                   [&](auto epilogue) { WriteFloats<kPixels>(task, pixel, channel, sums, epilogue); });
  }
  for (int p = 0; p < kPixels; ++p) {
    WritePixel(task, pixel + p, channel, channels, sums + p * kTileVectors);
  }
}

void Bconv(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin, int32_t channel_end) {
  for (int64_t block = pixel_begin; block < pixel_end; block += kBlockPixels) {
    const int64_t block_end = Min(block + kBlockPixels, pixel_end);
    for (int32_t channel = channel_begin; channel < channel_end; channel += kTileChannels) {
      const int32_t channels = Min(kTileChannels, channel_end - channel);
      const uint8_t* weights = task.weights + Weights::Bytes(channel, task.runs * task.run_words);
      WindowWalk walk{task, block};
      const uint8_t* windows[kTilePixels];
      int64_t pixel = block;
      for (; pixel + kTilePixels <= block_end; pixel += kTilePixels) {
        walk.Next<kTilePixels>(windows);
        BconvTile<kTilePixels>(task, windows, weights, pixel, channel, channels);
      }
      for (; pixel < block_end; ++pixel) {
        walk.Next<1>(windows);
        BconvTile<1>(task, windows, weights, pixel, channel, channels);
      }
    }
  }
}

bool Available() {
  constexpr unsigned long kHwcapNeon = 1ul << 12;
  return (getauxval(AT_HWCAP) & kHwcapNeon) != 0;
}

}  // namespace

const Isa kNeon32Isa = {
    .name = "neon32",
    .available = Available,
    .pack_float32_signs = PackFloat32Signs<FourLanes>,
    .pack_int8_signs = PackInt8Signs<FourLanes>,
    .pack_int8_comparisons = PackInt8Comparisons<FourLanes>,
    .pack_affine_signs = PackAffineSigns<FourLanes>,
    .max_window = MaxWindow<FourLanes>,
    .max_int8_window = MaxInt8Window,
    .gate_pixels = GatePixels<FourLanes>,
    .tile_pixels = kTilePixels,
    .tile_channels = kTileChannels,
    .macs_per_cycle = 30,
    .packed_weights_bytes = Weights::PackedBytes,
    .pack_weights = Weights::Pack,
    .bconv = Bconv,
    .int8_conv = Neon32Int8Conv,
};

const Int8ConvKernel kNeon32Int8Conv = {
    .vector_channels = LongDots::kLanes,
    .lane_taps = 2,
    .tap_bytes = 1,
    .offset = 0,
    .macs_per_cycle = 6,
    .rows = Int8ConvRows<LongDots, 2, 4>,
};

const Int8ConvKernel& Neon32Int8Conv() { return kNeon32Int8Conv; }

}  // namespace litebnn

#endif  // 32-bit NEON
