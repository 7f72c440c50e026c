// How a popcount sum becomes an output value. Every ISA does these operations in this order, by its own vectors
// (lanes.h), so that all give the same bits. What one does in another way says why.
#pragma once

#include <cstdint>

#include "kernels/isa/isa.h"
#include "kernels/isa/shared/arithmetic.h"

namespace litebnn {
// Every ISA's file has its own copy, compiled for its own CPU.
namespace {

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

inline ptrdiff_t OutputIndex(const BconvTask& task, int64_t pixel, int32_t channel) {
  return static_cast<ptrdiff_t>(pixel * task.output_channels + task.first_channel + channel);
}

// What is left to do with scaled float32 values.
enum class Addition { kNone, kAdd, kAddAndRectify };

template <typename Lanes, Addition kAddition>
struct Finish {
  const float* addend;

  // `index`: of the first of `count` values in the output, which the addend has the shape of.
  typename Lanes::Floats operator()(typename Lanes::Floats values, ptrdiff_t index,
                                    int32_t count = Lanes::kLanes) const {
    if (kAddition == Addition::kNone) return values;
    values = Lanes::Add(values, Lanes::LoadFirst(addend + index, count));
    return kAddition == Addition::kAddAndRectify ? Lanes::Rectify(values) : values;
  }
};

// What body(finish) returns for the task's Finish.
template <typename Lanes, typename Body>
__attribute__((always_inline)) inline auto WithFinish(const BconvTask& task, Body body) {
  if (task.addend == nullptr) return body(Finish<Lanes, Addition::kNone>{nullptr});
  if (!task.rectify_sum) return body(Finish<Lanes, Addition::kAdd>{task.addend});
  return body(Finish<Lanes, Addition::kAddAndRectify>{task.addend});
}

// One pixel's outputs of `channels` channels from `channel` on. `sums` are popcounts; they and the channels' constants
// are there for whole vectors. All is inlined, so that a number of channels that the compiler knows unrolls the loops.
template <typename Lanes, typename Sum>
struct PixelOutputs {
  using Floats = typename Lanes::Floats;
  const BconvTask& task;
  int64_t pixel;
  int32_t channel, channels;
  const Sum* sums;
  const int32_t* corrections;
  ptrdiff_t index;  // of the first output

  __attribute__((always_inline)) void Write() const {
    switch (task.output_type) {
      case Bconv2dOutputType::kFloat32:
        return WithFinish<Lanes>(task, [&](auto finish) __attribute__((always_inline)) { WriteFloats(finish); });
      case Bconv2dOutputType::kInt8:
        return WriteInt8();
      case Bconv2dOutputType::kBitpacked:
        return WriteBits();
    }
  }

  // Calls store(i, values, count) for `count` channels from the i-th on, until all are done.
  template <typename Store>
  __attribute__((always_inline)) void ForEachValues(Store store) const {
    // Read once: a compiler has to take any store for one into the task.
    const Sum* const all_sums = sums;
    const int32_t* const all_corrections = corrections;
    const float* const multipliers = task.multiplier + channel;
    const float* const biases = task.bias + channel;
    const auto depth = Lanes::Set(task.depth);
    const auto clamp_min = Lanes::Set(task.clamp_min), clamp_max = Lanes::Set(task.clamp_max);
    const auto values = [=](int32_t i) __attribute__((always_inline)) {
      auto dots = Lanes::Dots(depth, all_sums + i);
      if (all_corrections != nullptr) dots = Lanes::Add(dots, Lanes::Load(all_corrections + i));
      const auto floats = Lanes::ToFloats(Lanes::Clamp(dots, clamp_min, clamp_max));
      return Lanes::Add(Lanes::Multiply(floats, Lanes::Load(multipliers + i)), Lanes::Load(biases + i));
    };
    int32_t i = 0;
    for (; i <= channels - Lanes::kLanes; i += Lanes::kLanes) store(i, values(i), Lanes::kLanes);
    if (i < channels) store(i, values(i), channels - i);
  }

  template <typename Finish>
  __attribute__((always_inline)) void WriteFloats(Finish finish) const {
    float* const output = static_cast<float*>(task.output);
    ForEachValues([=, first = index](int32_t i, Floats values, int32_t count) {
      Lanes::StoreFirst(finish(values, first + i, count), output + first + i, count);
    });
  }

  // Multiplier and bias have been divided by the output's scale. Clamping before rounding keeps the conversion in
  // range.
  __attribute__((always_inline)) void WriteInt8() const {
    int8_t* const output = static_cast<int8_t*>(task.output) + index;
    const Floats low = Lanes::Set(static_cast<float>(-128 - task.zero_point));
    const Floats high = Lanes::Set(static_cast<float>(127 - task.zero_point));
    const auto zero_point = Lanes::Set(task.zero_point);
    ForEachValues([=](int32_t i, Floats values, int32_t count) {
      const auto rounded = Lanes::Round(Lanes::Clamp(values, low, high));
      Lanes::StoreFirst(Lanes::Add(rounded, zero_point), output + i, count);
    });
  }

  __attribute__((always_inline)) uint32_t WordOf(int32_t first, int32_t count) const {
    typename Lanes::Bits bits = {};
    for (int32_t i = first + (count - 1) / Lanes::kLanes * Lanes::kLanes; i >= first; i -= Lanes::kLanes) {
      auto values = Lanes::LoadSums(sums + i);
      if (corrections != nullptr) values = Lanes::Subtract(values, Lanes::Half(Lanes::Load(corrections + i)));
      bits = Lanes::AppendAbove(bits, values, Lanes::Load(task.threshold + channel + i));
    }
    return Lanes::ToWord(bits);
  }

  __attribute__((always_inline)) void WriteBits() const {
    uint32_t* const words = static_cast<uint32_t*>(task.output) + pixel * PackedWords(task.output_channels);
    const int64_t offset = task.first_channel + channel;
    int32_t i = 0;
    for (; i <= channels - kBitsPerWord; i += kBitsPerWord) {
      StoreBits(words, offset + i, kBitsPerWord, WordOf(i, kBitsPerWord));
    }
    const int32_t count = channels - i;
    if (count > 0) StoreBits(words, offset + i, count, WordOf(i, count) & ((1u << count) - 1));
  }
};

// Loops over kUnrolledChannels channels are unrolled.
template <typename Lanes, int32_t kUnrolledChannels = 0, typename Sum>
__attribute__((always_inline)) inline void WriteOutputs(const BconvTask& task, int64_t pixel, int32_t channel,
                                                        int32_t channels, const Sum* sums) {
  const int32_t* const corrections = task.corrections == nullptr ? nullptr : CorrectionsOf(task, pixel) + channel;
  const ptrdiff_t index = OutputIndex(task, pixel, channel);
  if (kUnrolledChannels > 0 && channels == kUnrolledChannels) {
    return PixelOutputs<Lanes, Sum>{task, pixel, channel, kUnrolledChannels, sums, corrections, index}.Write();
  }
  PixelOutputs<Lanes, Sum>{task, pixel, channel, channels, sums, corrections, index}.Write();
}

}  // namespace
}  // namespace litebnn
