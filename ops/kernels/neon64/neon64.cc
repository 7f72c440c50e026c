// 64-bit NEON. The input is staged with each 16 bits copied to the lanes of a vector; four pixels by 32 channels are
// summed up at a time (inner_loop.h), what is left of the pixels one by one.
#include "kernels/table.h"

#if defined(__aarch64__)

#include <cstring>

#include "kernels/neon64/inner_loop.h"
#include "kernels/neon64/quantize.h"
#include "kernels/output.h"
#include "kernels/pixel_walk.h"

namespace litebnn {
namespace {

// More would overflow the 16 bit sums.
constexpr int32_t kMaxWords = 65535 / kBitsPerWord;
// Pixels whose windows stay in the L1 cache while all channels pass over them.
constexpr int64_t kBlockPixels = 64;

int32_t Tiles(int32_t channels) { return (channels + kTileChannels - 1) / kTileChannels; }

size_t PackedWeightsBytes(int32_t channels, int32_t words) {
  return static_cast<size_t>(Tiles(channels)) * static_cast<size_t>(words) * kWeightsWordBytes;
}

// [tiles][words][2 steps][vectors][8 channels] of 16 bits.
void PackWeights(const uint32_t* filter, int32_t channels, int32_t runs, int32_t run_words, uint8_t* packed) {
  const int32_t words = runs * run_words;
  std::memset(packed, 0, PackedWeightsBytes(channels, words));
  for (int32_t channel = 0; channel < channels; ++channel) {
    auto* tile = reinterpret_cast<uint16_t*>(packed) +
                 static_cast<ptrdiff_t>(channel / kTileChannels) * words * 2 * kTileChannels;
    for (int32_t word = 0; word < words; ++word) {
      const uint32_t bits = filter[static_cast<int64_t>(channel) * words + word];
      for (int32_t step = 0; step < 2; ++step) {
        tile[(word * 2 + step) * kTileChannels + channel % kTileChannels] = static_cast<uint16_t>(bits >> (16 * step));
      }
    }
  }
}

void Stage(const uint32_t* words, int64_t count, uint8_t* staged) {
  const auto* halves = reinterpret_cast<const uint16_t*>(words);
  auto* out = reinterpret_cast<uint16_t*>(staged);
  for (; count >= 2; count -= 2, halves += 4, out += 32) vst1q_u16_x4(out, vld4q_dup_u16(halves));
  if (count > 0) vst1q_u16_x2(out, vld2q_dup_u16(halves));
}

// The runs of a window cut into blocks whose byte sums do not overflow.
struct Plan {
  struct Block {
    int32_t first_part, parts;
    ptrdiff_t words;
  };
  // As many as there can be: every block but the last ends for being full, every part ends with a run or a block.
  static size_t MaxBlocks(int32_t words) { return static_cast<size_t>(words / (kMaxBlockWords / 2 + 1)) + 1; }
  static size_t MaxParts(int32_t words) { return static_cast<size_t>(words) + 1; }
  static size_t Bytes(int32_t words) { return MaxBlocks(words) * sizeof(Block) + MaxParts(words) * sizeof(RunPart); }

  Plan(const BconvTask& task, void* memory)
      : blocks(static_cast<Block*>(memory)),
        parts(reinterpret_cast<RunPart*>(blocks + MaxBlocks(task.runs * task.run_words))) {
    int32_t part = 0;
    // Where the part before has ended, from the window's start.
    ptrdiff_t position = 0;
    blocks[0] = {0, 0, 0};
    for (int32_t run = 0; run < task.runs; ++run) {
      for (int32_t word = 0; word < task.run_words;) {
        Block* block = &blocks[count - 1];
        const int32_t left = task.run_words - word;
        const auto room = static_cast<int32_t>(kMaxBlockWords - block->words);
        // A run that fits a block of its own is not split.
        if (room == 0 || (left > room && left <= kMaxBlockWords)) {
          block = &blocks[count++];
          *block = {part, 0, 0};
          continue;
        }
        // An even number of words at a time where there are more than a block's.
        const int32_t words = left <= room ? left : room > 1 ? room / 2 * 2 : 1;
        const ptrdiff_t start = task.run_offsets[run] + static_cast<ptrdiff_t>(word) * kStagedWordBytes;
        parts[part++] = {words, start - position};
        position = start + static_cast<ptrdiff_t>(words) * kStagedWordBytes;
        ++block->parts;
        block->words += words;
        word += words;
      }
    }
  }

  Block* blocks;
  RunPart* parts;
  int32_t count = 1;
};

size_t ScratchBytes(int32_t words) { return Plan::Bytes(words); }

// sums[pixel][vector] of four pixels.
void SumTile(const Plan& plan, Windows windows, const uint8_t* weights, uint16x8_t* sums) {
  const Plan::Block* block = plan.blocks;
  const Plan::Block* const end = block + plan.count;
  SumBlock<true>(plan.parts, block->parts, &windows, weights, sums);
  while (++block != end) SumBlock<false>(plan.parts + block->first_part, block->parts, &windows, weights, sums);
}

// sums[vector] of one pixel.
void SumPixel(const Plan& plan, const uint8_t* window, const uint8_t* weights, uint16x8_t* sums) {
  uint16x8_t wide[kTileVectors] = {};
  const RunPart* part = plan.parts;
  for (int32_t i = 0; i < plan.count; ++i) {
    uint8x16_t bytes[kTileVectors] = {};
    for (int32_t j = 0; j < plan.blocks[i].parts; ++j, ++part) {
      window += part->step;
      for (int64_t word = 0; word < part->words; ++word, window += kStagedWordBytes, weights += kWeightsWordBytes) {
        const uint8x16x2_t x = vld1q_u8_x2(window);
        const uint8x16x4_t w0 = vld1q_u8_x4(weights), w1 = vld1q_u8_x4(weights + 64);
        for (int32_t v = 0; v < kTileVectors; ++v) {
          bytes[v] = vaddq_u8(bytes[v], vcntq_u8(veorq_u8(x.val[0], w0.val[v])));
          bytes[v] = vaddq_u8(bytes[v], vcntq_u8(veorq_u8(x.val[1], w1.val[v])));
        }
      }
    }
    for (int32_t v = 0; v < kTileVectors; ++v) wide[v] = vpadalq_u8(wide[v], bytes[v]);
  }
  for (int32_t v = 0; v < kTileVectors; ++v) sums[v] = wide[v];
}

// Dot products of 8 channels, then outputs of 8 channels. The vectors do what output.h does, in the same order.
template <bool kCorrected>
float32x4x2_t Dots(const BconvTask& task, uint16x8_t sums, const int32_t* corrections) {
  const int32x4_t depth = vdupq_n_s32(task.depth);
  const int32x4_t clamp_min = vdupq_n_s32(task.clamp_min), clamp_max = vdupq_n_s32(task.clamp_max);
  int32x4_t low = vsubq_s32(depth, vreinterpretq_s32_u32(vshll_n_u16(vget_low_u16(sums), 1)));
  int32x4_t high = vsubq_s32(depth, vreinterpretq_s32_u32(vshll_high_n_u16(sums, 1)));
  if (kCorrected) {
    low = vaddq_s32(low, vld1q_s32(corrections));
    high = vaddq_s32(high, vld1q_s32(corrections + 4));
  }
  return {vcvtq_f32_s32(vminq_s32(vmaxq_s32(low, clamp_min), clamp_max)),
          vcvtq_f32_s32(vminq_s32(vmaxq_s32(high, clamp_min), clamp_max))};
}

// Outputs of kPixels pixels and one whole tile of channels, from sums[pixel][vector].
template <int kPixels>
struct OutputTile {
  const BconvTask& task;
  int32_t channel;
  int64_t pixel;
  const uint16x8_t* sums;

  // Calls store(pointer to 8 outputs, their values) for dots(p, v, sums) of each pixel and vector.
  template <typename T, typename ToDots, typename Store>
  void ForEachVector(T* output, ToDots dots, Store store) const {
    T* pixel_outputs[kPixels];
#pragma GCC unroll 4
    for (int p = 0; p < kPixels; ++p) {
      pixel_outputs[p] = output + (pixel + p) * task.output_channels + task.first_channel + channel;
    }
    const float* const multipliers = task.multiplier + channel;
    const float* const biases = task.bias + channel;
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) {
      const int first = v * kVectorChannels;
      const float32x4_t multiplier[2] = {vld1q_f32(multipliers + first), vld1q_f32(multipliers + first + 4)};
      const float32x4_t bias[2] = {vld1q_f32(biases + first), vld1q_f32(biases + first + 4)};
#pragma GCC unroll 4
      for (int p = 0; p < kPixels; ++p) {
        const float32x4x2_t dot = dots(p, v, sums[p * kTileVectors + v]);
        store(pixel_outputs[p] + first, vaddq_f32(vmulq_f32(dot.val[0], multiplier[0]), bias[0]),
              vaddq_f32(vmulq_f32(dot.val[1], multiplier[1]), bias[1]));
      }
    }
  }

  template <bool kCorrected>
  float32x4x2_t AnyDots(int p, int v, uint16x8_t sum) const {
    const int32_t* corrections = kCorrected ? CorrectionsOf(task, pixel + p) + channel + v * kVectorChannels : nullptr;
    return Dots<kCorrected>(task, sum, corrections);
  }

  template <typename T, typename Store>
  void ForEachFloats(T* output, Store store) const {
    if (task.corrections != nullptr) {
      ForEachVector(output, [this](int p, int v, uint16x8_t sum) { return AnyDots<true>(p, v, sum); }, store);
    } else if (task.clamp_min == 0 && task.clamp_max == INT32_MAX && task.depth % 2 == 0) {
      // A subtraction that stops at zero is the activation too. Widening doubles the half.
      const uint16x8_t half_depth = vdupq_n_u16(static_cast<uint16_t>(task.depth / 2));
      const auto dots = [half_depth](int, int, uint16x8_t sum) {
        const uint16x8_t half = vqsubq_u16(half_depth, sum);
        return float32x4x2_t{vcvtq_f32_u32(vshll_n_u16(vget_low_u16(half), 1)),
                             vcvtq_f32_u32(vshll_high_n_u16(half, 1))};
      };
      ForEachVector(output, dots, store);
    } else if (task.clamp_min == INT32_MIN && task.depth <= INT16_MAX) {
      // 2^23 plus an integer below it has that integer as its last bits, and the difference of two such is exact.
      constexpr float kTwoTo23 = 8388608.0f;
      const uint32x4_t bits = vreinterpretq_u32_f32(vdupq_n_f32(kTwoTo23));
      const float32x4_t depth = vdupq_n_f32(kTwoTo23 + static_cast<float>(task.depth));
      const auto dots = [bits, depth](int, int, uint16x8_t sum) {
        const uint16x8_t twice = vshlq_n_u16(sum, 1);
        const float32x4_t low = vreinterpretq_f32_u32(vaddw_u16(bits, vget_low_u16(twice)));
        const float32x4_t high = vreinterpretq_f32_u32(vaddw_high_u16(bits, twice));
        return float32x4x2_t{vsubq_f32(depth, low), vsubq_f32(depth, high)};
      };
      ForEachVector(output, dots, store);
    } else {
      ForEachVector(output, [this](int p, int v, uint16x8_t sum) { return AnyDots<false>(p, v, sum); }, store);
    }
  }

  void Float32() const {
    auto* const first = static_cast<float*>(task.output);
    if (task.addend == nullptr) {
      ForEachFloats(first, [](float* output, float32x4_t low, float32x4_t high) {
        vst1q_f32(output, low);
        vst1q_f32(output + 4, high);
      });
    } else if (!task.rectify_sum) {
      ForEachFloats(first, [first, addends = task.addend](float* output, float32x4_t low, float32x4_t high) {
        const float* addend = addends + (output - first);
        vst1q_f32(output, vaddq_f32(low, vld1q_f32(addend)));
        vst1q_f32(output + 4, vaddq_f32(high, vld1q_f32(addend + 4)));
      });
    } else {
      ForEachFloats(first, [first, addends = task.addend](float* output, float32x4_t low, float32x4_t high) {
        const float* addend = addends + (output - first);
        const float32x4_t zero = vdupq_n_f32(0.0f);
        vst1q_f32(output, vmaxnmq_f32(vaddq_f32(low, vld1q_f32(addend)), zero));
        vst1q_f32(output + 4, vmaxnmq_f32(vaddq_f32(high, vld1q_f32(addend + 4)), zero));
      });
    }
  }

  void Int8() const {
    const float32x4_t lowest = vdupq_n_f32(static_cast<float>(-128 - task.zero_point));
    const float32x4_t highest = vdupq_n_f32(static_cast<float>(127 - task.zero_point));
    const int16x8_t zero_point = vdupq_n_s16(static_cast<int16_t>(task.zero_point));
    const auto round = [lowest, highest](float32x4_t value) {
      // Takes the number where the other is NaN; converts by rounding half away from zero.
      return vmovn_s32(vcvtaq_s32_f32(vminnmq_f32(vmaxnmq_f32(value, lowest), highest)));
    };
    ForEachFloats(static_cast<int8_t*>(task.output), [=](int8_t* output, float32x4_t low, float32x4_t high) {
      vst1_s8(output, vmovn_s16(vaddq_s16(vcombine_s16(round(low), round(high)), zero_point)));
    });
  }

  template <bool kCorrected>
  void Bits() const {
    constexpr uint16_t kLaneBits[kVectorChannels] = {1, 2, 4, 8, 16, 32, 64, 128};
    const uint16x8_t lane_bits = vld1q_u16(kLaneBits);
    for (int p = 0; p < kPixels; ++p) {
      const int32_t* corrections = kCorrected ? CorrectionsOf(task, pixel + p) + channel : nullptr;
      uint32_t word = 0;
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) {
        const uint16x8_t sum = sums[p * kTileVectors + v];
        const int32_t* threshold = task.threshold + channel + v * kVectorChannels;
        int32x4_t low = vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(sum)));
        int32x4_t high = vreinterpretq_s32_u32(vmovl_high_u16(sum));
        if (kCorrected) {
          // Halves of even numbers, exact in either direction.
          low = vsubq_s32(low, vshrq_n_s32(vld1q_s32(corrections + v * kVectorChannels), 1));
          high = vsubq_s32(high, vshrq_n_s32(vld1q_s32(corrections + v * kVectorChannels + 4), 1));
        }
        const uint16x8_t above = vuzp1q_u16(vreinterpretq_u16_u32(vcgtq_s32(low, vld1q_s32(threshold))),
                                            vreinterpretq_u16_u32(vcgtq_s32(high, vld1q_s32(threshold + 4))));
        word |= static_cast<uint32_t>(vaddvq_u16(vandq_u16(above, lane_bits))) << (v * kVectorChannels);
      }
      StoreBits(Words(p), task.first_channel + channel, kBitsPerWord, word);
    }
  }

  uint32_t* Words(int p) const {
    return static_cast<uint32_t*>(task.output) + (pixel + p) * PackedWords(task.output_channels);
  }

  // The tile's first `channels` channels, one by one.
  void Part(int32_t channels) const {
    for (int p = 0; p < kPixels; ++p) {
      const auto* pixel_sums = reinterpret_cast<const uint16_t*>(sums + p * kTileVectors);
      const int32_t* corrections = task.corrections == nullptr ? nullptr : CorrectionsOf(task, pixel + p) + channel;
      const int64_t index = (pixel + p) * task.output_channels + task.first_channel + channel;
      uint32_t word = 0;
      for (int32_t i = 0; i < channels; ++i) {
        const int32_t sum = pixel_sums[i], correction = corrections == nullptr ? 0 : corrections[i];
        if (task.output_type == Bconv2dOutputType::kFloat32) {
          static_cast<float*>(task.output)[index + i] =
              FloatSum(task, index + i, FloatOutput(task, channel + i, sum, correction));
        } else if (task.output_type == Bconv2dOutputType::kInt8) {
          static_cast<int8_t*>(task.output)[index + i] = Int8Output(task, channel + i, sum, correction);
        } else {
          word |= static_cast<uint32_t>(BitOutput(task, channel + i, sum, correction)) << i;
        }
      }
      if (task.output_type == Bconv2dOutputType::kBitpacked) {
        StoreBits(Words(p), task.first_channel + channel, channels, word);
      }
    }
  }

  void Write(int32_t channels) const {
    if (channels < kTileChannels) return Part(channels);
    switch (task.output_type) {
      case Bconv2dOutputType::kFloat32:
        return Float32();
      case Bconv2dOutputType::kInt8:
        return Int8();
      case Bconv2dOutputType::kBitpacked:
        return task.corrections == nullptr ? Bits<false>() : Bits<true>();
    }
  }
};

void Bconv(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin, int32_t channel_end) {
  const Plan plan(task, task.scratch);
  const ptrdiff_t tile_bytes = static_cast<ptrdiff_t>(task.runs) * task.run_words * kWeightsWordBytes;
  for (int64_t block = pixel_begin; block < pixel_end; block += kBlockPixels) {
    const int64_t block_end = std::min(block + kBlockPixels, pixel_end);
    for (int32_t channel = channel_begin; channel < channel_end; channel += kTileChannels) {
      const int32_t channels = std::min(kTileChannels, channel_end - channel);
      const uint8_t* weights = task.weights + channel / kTileChannels * tile_bytes;
      WindowWalk walk(task, block);
      int64_t pixel = block;
      uint16x8_t sums[kTilePixels * kTileVectors];
      for (; pixel + kTilePixels <= block_end; pixel += kTilePixels) {
        const uint8_t* windows[kTilePixels];
        walk.Next<kTilePixels>(windows);
        SumTile(plan, {windows[0], windows[1], windows[2], windows[3]}, weights, sums);
        OutputTile<kTilePixels>{task, channel, pixel, sums}.Write(channels);
      }
      for (; pixel < block_end; ++pixel) {
        SumPixel(plan, walk.Next(), weights, sums);
        OutputTile<1>{task, channel, pixel, sums}.Write(channels);
      }
    }
  }
}

bool Available() { return true; }

}  // namespace

const Kernels kNeon64Kernels = {
    "neon64",         Available, QuantizeFloat32Neon64, QuantizeInt8Neon64, kTilePixels,  kTileChannels,
    kStagedWordBytes, Stage,     PackedWeightsBytes,    PackWeights,        ScratchBytes, Bconv,
    kMaxWords,
};

}  // namespace litebnn

#endif  // __aarch64__
