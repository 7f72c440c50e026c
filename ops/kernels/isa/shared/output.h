// How a popcount sum becomes an output value. Every ISA does these operations in this order, so that all give the
// same bits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/isa/isa.h"

namespace litebnn {
// Every ISA's file has its own copy, compiled for its own CPU.
namespace {

inline int32_t ClampedDot(const BconvTask& task, int32_t popcount, int32_t correction) {
  return std::min(std::max(task.depth - 2 * popcount + correction, task.clamp_min), task.clamp_max);
}

inline float FloatOutput(const BconvTask& task, int32_t channel, int32_t popcount, int32_t correction) {
  const float product = static_cast<float>(ClampedDot(task, popcount, correction)) * task.multiplier[channel];
  return product + task.bias[channel];
}

// The float32 output at `index`, with the addend that may be there. A NaN and -0 are rectified to +0, as in every
// ISA.
inline float FloatSum(const BconvTask& task, int64_t index, float value) {
  if (task.addend == nullptr) return value;
  const float sum = value + task.addend[index];
  return task.rectify_sum && !(sum > 0.0f) ? 0.0f : sum;
}

// Multiplier and bias have been divided by the output's scale.
inline int8_t Int8Output(const BconvTask& task, int32_t channel, int32_t popcount, int32_t correction) {
  const float value = FloatOutput(task, channel, popcount, correction);
  // Saturating before rounding keeps the conversion in range; NaN becomes the lower end, as in every ISA.
  const auto low = static_cast<float>(-128 - task.zero_point), high = static_cast<float>(127 - task.zero_point);
  const float bounded = std::min(value > low ? value : low, high);
  // The largest float below one half: adding it and truncating rounds half away from zero, also next to one half.
  const float half = bounded < 0.0f ? -0x1.fffffep-2f : 0x1.fffffep-2f;
  return static_cast<int8_t>(static_cast<int32_t>(bounded + half) + task.zero_point);
}

inline bool BitOutput(const BconvTask& task, int32_t channel, int32_t popcount, int32_t correction) {
  return popcount - correction / 2 > task.threshold[channel];
}

// Writes `count` (at most 32) bits at bit `offset` of a pixel's words. Bits are written in rising order and by one
// thread where groups share a word: the first one to touch a word clears it.
inline void StoreBits(uint32_t* words, int64_t offset, int32_t count, uint32_t bits) {
  uint32_t* word = words + offset / kBitsPerWord;
  const auto shift = static_cast<int32_t>(offset % kBitsPerWord);
  if (shift == 0) {
    *word = bits;
    return;
  }
  *word |= bits << shift;
  if (shift + count > kBitsPerWord) word[1] = bits >> (kBitsPerWord - shift);
}

// Of the group's channel 0; only where the task has corrections.
inline const int32_t* CorrectionsOf(const BconvTask& task, int64_t pixel) {
  return task.corrections + task.row_correction[pixel / task.output_width] +
         task.column_correction[pixel % task.output_width];
}

// One pixel's outputs of `channels` (at most 32) channels, one by one: what is left over beside whole tiles.
inline void WriteChannels(const BconvTask& task, int64_t pixel, int32_t channel, int32_t channels,
                          const uint16_t* sums) {
  const int32_t* corrections = task.corrections == nullptr ? nullptr : CorrectionsOf(task, pixel) + channel;
  const int64_t index = pixel * task.output_channels + task.first_channel + channel;
  uint32_t word = 0;
  for (int32_t i = 0; i < channels; ++i) {
    const int32_t correction = corrections == nullptr ? 0 : corrections[i];
    if (task.output_type == Bconv2dOutputType::kFloat32) {
      static_cast<float*>(task.output)[index + i] =
          FloatSum(task, index + i, FloatOutput(task, channel + i, sums[i], correction));
    } else if (task.output_type == Bconv2dOutputType::kInt8) {
      static_cast<int8_t*>(task.output)[index + i] = Int8Output(task, channel + i, sums[i], correction);
    } else {
      word |= static_cast<uint32_t>(BitOutput(task, channel + i, sums[i], correction)) << i;
    }
  }
  if (task.output_type == Bconv2dOutputType::kBitpacked) {
    uint32_t* words = static_cast<uint32_t*>(task.output) + pixel * PackedWords(task.output_channels);
    StoreBits(words, task.first_channel + channel, channels, word);
  }
}

}  // namespace
}  // namespace litebnn
