// The file converts popcount sums to outputs. Every ISA uses these operations in this order, on the vectors of its own
// lanes.h, so that all ISAs compute the same bits. If code uses another order, a comment gives the reason.
#pragma once

#include <cstdint>

#include "kernels/isa/isa.h"
#include "kernels/isa/shared/arithmetic.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

// Writes `count` (at most 32) bits at bit `offset` of a pixel's words. The first write to a word clears it, so one
// thread must write the bits of a word in rising order.
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

// Returns the padding corrections for output pixel `pixel`, one for each channel of the task's group of channels. The
// pointer task.corrections must not be null.
inline const int32_t* CorrectionsOf(const BconvTask& task, int64_t pixel) {
  // The division has 32 bits, because a 64-bit division takes several times as long. There are fewer than 2^31 pixels.
  const auto number = static_cast<uint32_t>(pixel), width = static_cast<uint32_t>(task.output_width);
  return task.corrections + task.row_correction[number / width] + task.column_correction[number % width];
}

inline ptrdiff_t OutputIndex(const BconvTask& task, int64_t pixel, int32_t channel) {
  return static_cast<ptrdiff_t>(pixel * task.output_channels + task.first_channel + channel);
}

// The class has the operations that follow a convolution with float outputs (its epilogue). The call epilogue(channel,
// count) returns the epilogue for `count` channels from `channel` on. The method Store applies the operations to values
// and stores the results.
template <typename Lanes, EpilogueKind kKind>
struct Epilogue {
  using Floats = typename Lanes::Floats;
  // The constant is true if this kind of epilogue is common enough for specialized code.
  static constexpr bool kIsCommon = true;
  using Value = float;
  const float* addend;
  float* output;

  explicit Epilogue(const BconvTask& task) : addend(task.epilogue.addend), output(static_cast<float*>(task.output)) {}

  struct Channels {
    const float* addend;
    float* output;

    // `index` is the position of the first value in the output and in the addend.
    Floats operator()(Floats values, ptrdiff_t index, int32_t count = Lanes::kLanes) const {
      if (kKind == EpilogueKind::kNone) return values;
      values = Lanes::Add(values, Lanes::LoadFirst(addend + index, count));
      return kKind == EpilogueKind::kAddAndRectify ? Lanes::Rectify(values) : values;
    }
    void Store(Floats values, ptrdiff_t index, int32_t count = Lanes::kLanes) const {
      Lanes::StoreFirst((*this)(values, index, count), output + index, count);
    }
  };
  Channels operator()(int32_t /*channel*/, int32_t /*count*/ = Lanes::kLanes) const { return {addend, output}; }
};

template <typename Lanes>
struct Epilogue<Lanes, EpilogueKind::kGateAndAdd> {
  using Floats = typename Lanes::Floats;
  static constexpr bool kIsCommon = false;
  using Value = float;
  const float *gate, *slope, *addend;
  float* output;

  explicit Epilogue(const BconvTask& task)
      : gate(task.epilogue.gate),
        slope(task.epilogue.slope),
        addend(task.epilogue.addend),
        output(static_cast<float*>(task.output)) {}

  struct Channels {
    Floats gate, slope;
    const float* addend;
    float* output;

    Floats operator()(Floats values, ptrdiff_t index, int32_t count = Lanes::kLanes) const {
      const Floats prelu = Lanes::Prelu(Lanes::Multiply(values, gate), slope);
      return Lanes::Add(prelu, Lanes::LoadFirst(addend + index, count));
    }
    void Store(Floats values, ptrdiff_t index, int32_t count = Lanes::kLanes) const {
      Lanes::StoreFirst((*this)(values, index, count), output + index, count);
    }
  };
  Channels operator()(int32_t channel, int32_t count = Lanes::kLanes) const {
    return {Lanes::LoadFirst(gate + channel, count), Lanes::LoadFirst(slope + channel, count), addend, output};
  }
};

// The class has the operations that follow a convolution with int8 outputs (its epilogue). Each channel's multiplier
// and bias have been divided by the output's scale. Values are clamped before they are rounded, so that the conversion
// to integers cannot overflow.
template <typename Lanes, bool kAdds>
struct Int8Epilogue {
  using Floats = typename Lanes::Floats;
  using Ints = typename Lanes::Ints;
  static constexpr bool kIsCommon = false;
  using Value = int8_t;
  Floats low, high;
  Ints zero_point;
  int8_t* output;
  const int8_t* addend;
  FloatSum sum;
  const FloatSum* exceptions;  // null if there are none

  explicit Int8Epilogue(const BconvTask& task)
      : low(Lanes::Set(static_cast<float>(-128 - task.zero_point))),
        high(Lanes::Set(static_cast<float>(127 - task.zero_point))),
        zero_point(Lanes::Set(kAdds ? task.epilogue.int8_sum.zero_point : task.zero_point)),
        output(static_cast<int8_t*>(task.output)),
        addend(task.epilogue.int8_addend),
        sum(task.epilogue.int8_sum),
        exceptions(kAdds && sum.exceptions > 0 ? &task.epilogue.int8_sum : nullptr) {}

  // Corrects the rounded results of the exceptions of `sum`: the pairs of operands for which the float sum differs from
  // the reference kernel. The function is not inlined, because few sums have exceptions.
  __attribute__((noinline)) static Ints AddExceptions(const FloatSum& sum, Ints results, Ints first, Ints second) {
    for (int32_t i = 0; i < sum.exceptions; ++i) {
      const FloatSum::Exception& e = sum.exception[i];
      results = Lanes::AddIfEqual(results, Lanes::Set(e.difference), first, Lanes::Set(e.first), second,
                                  Lanes::Set(e.second));
    }
    return results;
  }

  // Returns the int8 outputs for `values`. `index` is the position of the first of them in the output, and in the
  // tensor that is added.
  __attribute__((always_inline)) Ints operator()(Floats values, ptrdiff_t index, int32_t count = Lanes::kLanes) const {
    Ints levels = Lanes::Round(Lanes::Clamp(values, low, high));
    if constexpr (kAdds) {
      const Ints second = Lanes::Subtract(Lanes::LoadBytes(addend + index, count), Lanes::Set(sum.second_zero_point));
      const Floats first_product = Lanes::Multiply(Lanes::ToFloats(levels), Lanes::Set(sum.first_scale));
      const Floats second_product = Lanes::Multiply(Lanes::ToFloats(second), Lanes::Set(sum.second_scale));
      Ints rounded = Lanes::Round(Lanes::Add(first_product, second_product));
      if (__builtin_expect(exceptions != nullptr, 0)) rounded = AddExceptions(*exceptions, rounded, levels, second);
      levels = Lanes::Clamp(rounded, Lanes::Set(sum.low), Lanes::Set(sum.high));
    }
    return Lanes::Add(levels, zero_point);
  }
  __attribute__((always_inline)) void Store(Floats values, ptrdiff_t index, int32_t count = Lanes::kLanes) const {
    Lanes::StoreFirst((*this)(values, index, count), output + index, count);
  }
  const Int8Epilogue& operator()(int32_t /*channel*/, int32_t /*count*/ = Lanes::kLanes) const { return *this; }
  using Channels = Int8Epilogue;
};

// The constant is the largest depth (multiply-adds per output) for which floats represent all dot products exactly.
constexpr int32_t kMaxFloatDepth = 1 << 24;

// True if the task's outputs need no padding corrections and no upper clamp.
inline bool IsPlain(const BconvTask& task) { return task.corrections == nullptr && task.clamp_max == INT32_MAX; }

// True if the task adds an int8 tensor by a FloatSum (kernels.h) that has exceptions: pairs of operands for which the
// sum needs a correction. Only Int8Epilogue makes these corrections.
inline bool HasExceptions(const BconvTask& task) {
  return task.epilogue_kind == EpilogueKind::kInt8Add && task.epilogue.int8_sum.exceptions > 0;
}

// Calls body(epilogue) with the task's epilogue, and returns its result. The epilogue's kind must be one for float
// outputs.
template <typename Lanes, typename Body>
__attribute__((always_inline)) inline auto WithFloatEpilogue(const BconvTask& task, Body body) {
  const EpilogueKind kind = task.epilogue_kind;
  if (kind == EpilogueKind::kNone) return body(Epilogue<Lanes, EpilogueKind::kNone>(task));
  if (kind == EpilogueKind::kAdd) return body(Epilogue<Lanes, EpilogueKind::kAdd>(task));
  if (kind == EpilogueKind::kAddAndRectify) return body(Epilogue<Lanes, EpilogueKind::kAddAndRectify>(task));
  return body(Epilogue<Lanes, EpilogueKind::kGateAndAdd>(task));
}

// Calls body(epilogue) with the task's epilogue, and returns its result. The epilogue's kind must not be kBits.
template <typename Lanes, typename Body>
__attribute__((always_inline)) inline auto WithEpilogue(const BconvTask& task, Body body) {
  if (task.epilogue_kind == EpilogueKind::kInt8) return body(Int8Epilogue<Lanes, false>(task));
  if (task.epilogue_kind == EpilogueKind::kInt8Add) return body(Int8Epilogue<Lanes, true>(task));
  return WithFloatEpilogue<Lanes>(task, body);
}

// Writes the outputs of kPixels pixels in `channels` channels from `channel` on. The array `sums` has their popcounts,
// those of one pixel `stride` elements after those of the pixel before. The sums and the channel constants are padded
// to whole vectors. All functions are inlined, so that the compiler unrolls loops over a constant number of channels.
template <typename Lanes, int kPixels, typename Sum>
struct TileOutputs {
  using Floats = typename Lanes::Floats;
  const BconvTask& task;
  int64_t pixel;
  int32_t channel, channels;
  const Sum* sums;
  int32_t stride;

  __attribute__((always_inline)) void Write() const {
    if (task.output_type == Bconv2dOutputType::kBitpacked) return WriteBits();
    WithEpilogue<Lanes>(task, [&](auto epilogue) __attribute__((always_inline)) {
      if constexpr (decltype(epilogue)::kIsCommon) {
        WriteValues(epilogue);
      } else {
        for (int p = 0; p < kPixels; ++p) Pixel(p).WriteAlone(epilogue);
      }
    });
  }

  // Returns the padding corrections of pixel `p`, from `channel` on, or null if this layer needs no corrections.
  __attribute__((always_inline)) const int32_t* Corrections(int64_t p) const {
    return task.corrections == nullptr ? nullptr : CorrectionsOf(task, pixel + p) + channel;
  }

  // Calls store(first channel, output index, values, count) for all channels of all pixels.
  template <typename Store>
  __attribute__((always_inline)) void ForEachValues(Store store) const {
    // The object is copied to a local variable, whose members can stay in registers, because no store can modify them.
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

  template <typename Epilogue>
  __attribute__((always_inline)) void WriteValues(Epilogue epilogue) const {
    ForEachValues([=](int32_t first, ptrdiff_t index, Floats values, int32_t count) {
      epilogue(first, count).Store(values, index, count);
    });
  }

  TileOutputs<Lanes, 1, Sum> Pixel(int p) const { return {task, pixel + p, channel, channels, sums + p * stride, 0}; }

  // The function is not inlined, because a copy for each value of kPixels would make the code large.
  template <typename Epilogue>
  __attribute__((noinline)) void WriteAlone(Epilogue epilogue) const {
    WriteValues(epilogue);
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

// Writes the outputs of one pixel. If the pixel has exactly kUnrolledChannels channels, the loop over the channels is
// unrolled.
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
