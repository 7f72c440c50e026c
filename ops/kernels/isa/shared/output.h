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

// The corrections begin with the group's channel 0. Only a task that has some may be asked for them.
inline const int32_t* CorrectionsOf(const BconvTask& task, int64_t pixel) {
  // Outputs are fewer than 2^31, and a division of 64 bits takes several times as long.
  const auto number = static_cast<uint32_t>(pixel), width = static_cast<uint32_t>(task.output_width);
  return task.corrections + task.row_correction[number / width] + task.column_correction[number % width];
}

inline ptrdiff_t OutputIndex(const BconvTask& task, int64_t pixel, int32_t channel) {
  return static_cast<ptrdiff_t>(pixel * task.output_channels + task.first_channel + channel);
}

// finish(channel) is what finishes the scaled values of some pixels in `count` of the group's channels from there on.
template <typename Lanes, FinishKind kKind>
struct Finish {
  using Floats = typename Lanes::Floats;
  // Whether so many layers have it that special cases are worth code of their own.
  static constexpr bool kIsCommon = true;
  const float* addend;

  explicit Finish(const BconvTask& task) : addend(task.finish.addend) {}

  struct Channels {
    const float* addend;

    // `index`: of the first value in the output, which the addend has the shape of.
    Floats operator()(Floats values, ptrdiff_t index, int32_t count = Lanes::kLanes) const {
      if (kKind == FinishKind::kNone) return values;
      values = Lanes::Add(values, Lanes::LoadFirst(addend + index, count));
      return kKind == FinishKind::kAddAndRectify ? Lanes::Rectify(values) : values;
    }
  };
  Channels operator()(int32_t /*channel*/, int32_t /*count*/ = Lanes::kLanes) const { return {addend}; }
};

template <typename Lanes>
struct Finish<Lanes, FinishKind::kGateAndAdd> {
  using Floats = typename Lanes::Floats;
  static constexpr bool kIsCommon = false;
  const float *gate, *slope, *addend;

  explicit Finish(const BconvTask& task)
      : gate(task.finish.gate), slope(task.finish.slope), addend(task.finish.addend) {}

  struct Channels {
    Floats gate, slope;
    const float* addend;

    Floats operator()(Floats values, ptrdiff_t index, int32_t count = Lanes::kLanes) const {
      const Floats leaked = Lanes::Leak(Lanes::Multiply(values, gate), slope);
      return Lanes::Add(leaked, Lanes::LoadFirst(addend + index, count));
    }
  };
  Channels operator()(int32_t channel, int32_t count = Lanes::kLanes) const {
    return {Lanes::LoadFirst(gate + channel, count), Lanes::LoadFirst(slope + channel, count), addend};
  }
};

// What body(finish) returns for the task's Finish.
template <typename Lanes, typename Body>
__attribute__((always_inline)) inline auto WithFinish(const BconvTask& task, Body body) {
  const FinishKind kind = task.finish_kind;
  if (kind == FinishKind::kNone) return body(Finish<Lanes, FinishKind::kNone>(task));
  if (kind == FinishKind::kAdd) return body(Finish<Lanes, FinishKind::kAdd>(task));
  if (kind == FinishKind::kAddAndRectify) return body(Finish<Lanes, FinishKind::kAddAndRectify>(task));
  return body(Finish<Lanes, FinishKind::kGateAndAdd>(task));
}

// The outputs of kPixels pixels in `channels` channels from `channel` on. `sums` are popcounts, a pixel's `stride`
// after those of the one before; they and the channels' constants are there for whole vectors. All is inlined, so that
// a number of channels that the compiler knows unrolls the loops.
template <typename Lanes, int kPixels, typename Sum>
struct TileOutputs {
  using Floats = typename Lanes::Floats;
  const BconvTask& task;
  int64_t pixel;
  int32_t channel, channels;
  const Sum* sums;
  int32_t stride;

  __attribute__((always_inline)) void Write() const {
    switch (task.output_type) {
      case Bconv2dOutputType::kFloat32:
        return WithFinish<Lanes>(task, [&](auto finish) __attribute__((always_inline)) {
          if constexpr (decltype(finish)::kIsCommon) {
            WriteFloats(finish);
          } else {
            for (int p = 0; p < kPixels; ++p) Pixel(p).WriteAlone(finish);
          }
        });
      case Bconv2dOutputType::kInt8:
        return WriteInt8();
      case Bconv2dOutputType::kBitpacked:
        return WriteBits();
    }
  }

  // Null where there are none.
  __attribute__((always_inline)) const int32_t* Corrections(int64_t p) const {
    return task.corrections == nullptr ? nullptr : CorrectionsOf(task, pixel + p) + channel;
  }

  // Calls store(first, index of its output, values, count) for `count` channels of a pixel from `first` on, until all
  // are done.
  template <typename Store>
  __attribute__((always_inline)) void ForEachValues(Store store) const {
    // Read once: a compiler has to take any store for one into the task.
    const TileOutputs tile = *this;
    const float* const multipliers = task.multiplier + channel;
    const float* const biases = task.bias + channel;
    const ptrdiff_t first = OutputIndex(task, pixel, channel), output_channels = task.output_channels;
    const auto depth = Lanes::Set(task.depth);
    const auto clamp_min = Lanes::Set(task.clamp_min), clamp_max = Lanes::Set(task.clamp_max);
    const bool corrects = task.corrections != nullptr;
    const int32_t* corrections[kPixels];
    for (int p = 0; p < kPixels; ++p) corrections[p] = Corrections(p);
    const auto store_vector = [&](int32_t i, int32_t count) __attribute__((always_inline)) {
      const auto multiplier = Lanes::Load(multipliers + i), bias = Lanes::Load(biases + i);
      for (int p = 0; p < kPixels; ++p) {
        auto dots = Lanes::Dots(depth, tile.sums + p * tile.stride + i);
        if (corrects) dots = Lanes::Add(dots, Lanes::Load(corrections[p] + i));
        const auto floats = Lanes::ToFloats(Lanes::Clamp(dots, clamp_min, clamp_max));
        const auto values = Lanes::Add(Lanes::Multiply(floats, multiplier), bias);
        store(tile.channel + i, first + p * output_channels + i, values, count);
      }
    };
    int32_t i = 0;
    for (; i <= tile.channels - Lanes::kLanes; i += Lanes::kLanes) store_vector(i, Lanes::kLanes);
    if (i < tile.channels) store_vector(i, tile.channels - i);
  }

  template <typename Finish>
  __attribute__((always_inline)) void WriteFloats(Finish finish) const {
    float* const output = static_cast<float*>(task.output);
    ForEachValues([=](int32_t first, ptrdiff_t index, Floats values, int32_t count) {
      Lanes::StoreFirst(finish(first, count)(values, index, count), output + index, count);
    });
  }

  TileOutputs<Lanes, 1, Sum> Pixel(int p) const { return {task, pixel + p, channel, channels, sums + p * stride, 0}; }

  // By itself, as copies for all numbers of pixels would be long.
  template <typename Finish>
  __attribute__((noinline, cold)) void WriteAlone(Finish finish) const {
    WriteFloats(finish);
  }

  // Multiplier and bias have been divided by the output's scale. Clamping before rounding keeps the conversion in
  // range.
  __attribute__((always_inline)) void WriteInt8() const {
    int8_t* const output = static_cast<int8_t*>(task.output);
    const Floats low = Lanes::Set(static_cast<float>(-128 - task.zero_point));
    const Floats high = Lanes::Set(static_cast<float>(127 - task.zero_point));
    const auto zero_point = Lanes::Set(task.zero_point);
    ForEachValues([=](int32_t, ptrdiff_t index, Floats values, int32_t count) {
      const auto rounded = Lanes::Round(Lanes::Clamp(values, low, high));
      Lanes::StoreFirst(Lanes::Add(rounded, zero_point), output + index, count);
    });
  }

  __attribute__((always_inline)) uint32_t WordOf(const Sum* pixel_sums, const int32_t* corrections, int32_t first,
                                                 int32_t count) const {
    typename Lanes::Bits bits = {};
    for (int32_t i = first + (count - 1) / Lanes::kLanes * Lanes::kLanes; i >= first; i -= Lanes::kLanes) {
      auto values = Lanes::LoadSums(pixel_sums + i);
      if (corrections != nullptr) values = Lanes::Subtract(values, Lanes::Half(Lanes::Load(corrections + i)));
      bits = Lanes::AppendAbove(bits, values, Lanes::Load(task.threshold + channel + i));
    }
    return Lanes::ToWord(bits);
  }

  __attribute__((always_inline)) void WriteBits() const {
    for (int p = 0; p < kPixels; ++p) {
      uint32_t* const words = static_cast<uint32_t*>(task.output) + (pixel + p) * PackedWords(task.output_channels);
      const Sum* const pixel_sums = sums + p * stride;
      const int32_t* const corrections = Corrections(p);
      const int64_t offset = task.first_channel + channel;
      int32_t i = 0;
      for (; i <= channels - kBitsPerWord; i += kBitsPerWord) {
        StoreBits(words, offset + i, kBitsPerWord, WordOf(pixel_sums, corrections, i, kBitsPerWord));
      }
      const int32_t count = channels - i;
      if (count > 0)
        StoreBits(words, offset + i, count, WordOf(pixel_sums, corrections, i, count) & ((1u << count) - 1));
    }
  }
};

// One pixel's outputs. Loops over kUnrolledChannels channels are unrolled.
template <typename Lanes, int32_t kUnrolledChannels = 0, typename Sum>
__attribute__((always_inline)) inline void WriteOutputs(const BconvTask& task, int64_t pixel, int32_t channel,
                                                        int32_t channels, const Sum* sums) {
  if (kUnrolledChannels > 0 && channels == kUnrolledChannels) {
    return TileOutputs<Lanes, 1, Sum>{task, pixel, channel, kUnrolledChannels, sums, 0}.Write();
  }
  TileOutputs<Lanes, 1, Sum>{task, pixel, channel, channels, sums, 0}.Write();
}

}  // namespace
}  // namespace litebnn
