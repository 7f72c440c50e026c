// What the templates for all ISAs ask of an ISA's vectors, and the vectors of no ISA: single numbers.
#pragma once

#include <cstdint>

namespace litebnn {
// Every ISA's file has its own copy, compiled for its own CPU.
namespace {

struct OneLane {
  using Floats = float;
  using Ints = int32_t;
  using Bits = uint32_t;
  static constexpr int32_t kLanes = 1;

  static Floats Set(float value) { return value; }
  static Ints Set(int32_t value) { return value; }
  static Floats Load(const float* values) { return *values; }
  static Ints Load(const int32_t* values) { return *values; }
  static void Store(Floats values, float* output) { *output = values; }
  // `count` is from 1 to kLanes; what is not loaded may be anything.
  static Floats LoadFirst(const float* values, int32_t) { return *values; }
  static void StoreFirst(Floats values, float* output, int32_t) { *output = values; }
  static void StoreFirst(Ints values, int8_t* output, int32_t) { *output = static_cast<int8_t>(values); }
  // Popcount sums, in what an ISA sums them up in.
  static Ints LoadSums(const int32_t* sums) { return *sums; }
  // depth - 2 * sums, where twice a sum may be more than an int32_t holds
  static Ints Dots(Ints depth, const int32_t* sums) { return depth - *sums - *sums; }

  static Floats Add(Floats a, Floats b) { return a + b; }
  static Floats Multiply(Floats a, Floats b) { return a * b; }
  // a > b ? a : b, also where they do not compare.
  static Floats Larger(Floats a, Floats b) { return a > b ? a : b; }
  // What is below 0 times its slope; a NaN and -0 stay as they are.
  static Floats Leak(Floats values, Floats slopes) { return values < 0.0f ? values * slopes : values; }
  // What is not above 0 becomes +0: a NaN and -0 too.
  static Floats Rectify(Floats values) { return Larger(values, 0.0f); }
  // A NaN becomes `low`.
  static Floats Clamp(Floats values, Floats low, Floats high) {
    const Floats above = Larger(values, low);
    return above < high ? above : high;
  }
  // Half away from zero, of values that have been clamped. The largest float below one half does that, as it is added
  // and the sum truncated, also to the values next to one half.
  static Ints Round(Floats values) {
    return static_cast<int32_t>(values + (values < 0.0f ? -0x1.fffffep-2f : 0x1.fffffep-2f));
  }

  static Ints Add(Ints a, Ints b) { return a + b; }
  static Ints Subtract(Ints a, Ints b) { return a - b; }
  // The values are even, so that an ISA may shift them.
  static Ints Half(Ints values) { return values / 2; }
  static Ints Clamp(Ints values, Ints low, Ints high) {
    const Ints above = values > low ? values : low;
    return above < high ? above : high;
  }
  static Floats ToFloats(Ints values) { return static_cast<float>(values); }
  // Bits of lanes, at most 32. AppendAbove puts those of a > b below the ones that are there already, and
  // AppendBelowZero those of values below zero.
  static Bits AppendAbove(Bits bits, Ints a, Ints b) { return bits << 1 | (a > b ? 1u : 0u); }
  static Bits AppendBelowZero(Bits bits, Floats values) { return bits << 1 | (values < 0.0f ? 1u : 0u); }
  static uint32_t ToWord(Bits bits) { return bits; }

  // The bits of 32 values, packed.
  static uint32_t BitsBelowZero(const float* values) { return BitsBelow(values, 0.0f); }
  template <typename T>
  static uint32_t BitsBelow(const T* values, T limit) {
    uint32_t bits = 0;
    for (int32_t i = 0; i < 32; ++i) bits |= static_cast<uint32_t>(values[i] < limit) << i;
    return bits;
  }
};

}  // namespace
}  // namespace litebnn
