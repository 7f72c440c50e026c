// The vector operations that the kernels' templates require of each ISA are the members of OneLane, which is their
// scalar version.
#pragma once

#include <cstdint>

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
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
  // Loads the first `count` lanes, 1 to kLanes. The other lanes are undefined.
  static Floats LoadFirst(const float* values, int32_t) { return *values; }
  static void StoreFirst(Floats values, float* output, int32_t) { *output = values; }
  static void StoreFirst(Ints values, int8_t* output, int32_t) { *output = static_cast<int8_t>(values); }
  static Ints LoadBytes(const int8_t* values, int32_t) { return *values; }
  // Loads a vector of integers: one sum of popcounts for each lane.
  static Ints LoadSums(const int32_t* sums) { return *sums; }
  // Returns depth - 2 * sums. The sum is subtracted twice, because twice a sum may overflow an int32_t.
  static Ints Dots(Ints depth, const int32_t* sums) { return depth - *sums - *sums; }

  static Floats Add(Floats a, Floats b) { return a + b; }
  static Floats Multiply(Floats a, Floats b) { return a * b; }
  // Returns a > b ? a : b in each lane, also if a value is NaN.
  static Floats Larger(Floats a, Floats b) { return a > b ? a : b; }
  // Computes PRELU: values below 0 are multiplied by their slope, and NaN and -0 are unchanged.
  static Floats Prelu(Floats values, Floats slopes) { return values < 0.0f ? values * slopes : values; }
  // Sets values that are not above 0 to +0, including NaN and -0.
  static Floats Rectify(Floats values) { return Larger(values, 0.0f); }
  // Clamps values to [low, high], where a NaN becomes `low`.
  static Floats Clamp(Floats values, Floats low, Floats high) {
    const Floats above = Larger(values, low);
    return above < high ? above : high;
  }
  // Rounds clamped values to integers, halves away from zero. The function adds the largest float below one half and
  // truncates, so that values just below one half round to 0.
  static Ints Round(Floats values) {
    return static_cast<int32_t>(values + (values < 0.0f ? -0x1.fffffep-2f : 0x1.fffffep-2f));
  }

  static Ints Add(Ints a, Ints b) { return a + b; }
  static Ints Subtract(Ints a, Ints b) { return a - b; }
  // Returns values + difference in each lane in which a == b and c == d, and `values` elsewhere.
  static Ints AddIfEqual(Ints values, Ints difference, Ints a, Ints b, Ints c, Ints d) {
    return values + (a == b && c == d ? difference : 0);
  }
  // Halves integers. All of them are even, so an ISA may shift instead of dividing.
  static Ints Half(Ints values) { return values / 2; }
  static Ints Clamp(Ints values, Ints low, Ints high) {
    const Ints above = values > low ? values : low;
    return above < high ? above : high;
  }
  static Floats ToFloats(Ints values) { return static_cast<float>(values); }
  // A Bits is a word that collects the results of up to 32 comparisons, one bit per lane. AppendAbove shifts the
  // earlier bits up and inserts the results of a > b below them. AppendBelowZero inserts the results of values < 0 in
  // the same way.
  static Bits AppendAbove(Bits bits, Ints a, Ints b) { return bits << 1 | (a > b ? 1u : 0u); }
  static Bits AppendBelowZero(Bits bits, Floats values) { return bits << 1 | (values < 0.0f ? 1u : 0u); }
  static uint32_t ToWord(Bits bits) { return bits; }

  // Returns the packed signs of 32 values: bit i is set if values[i] is below 0.
  static uint32_t BitsBelowZero(const float* values) { return BitsBelow(values, 0.0f); }
  template <typename T>
  static uint32_t BitsBelow(const T* values, T limit) {
    uint32_t bits = 0;
    for (int32_t i = 0; i < 32; ++i) bits |= static_cast<uint32_t>(values[i] < limit) << i;
    return bits;
  }
  // In the returned word, bit i is set if values[i] is below limits[i].
  static uint32_t BitsBelow(const int8_t* values, const int8_t* limits) {
    uint32_t bits = 0;
    for (int32_t i = 0; i < 32; ++i) bits |= static_cast<uint32_t>(values[i] < limits[i]) << i;
    return bits;
  }
};

}  // namespace
}  // namespace litebnn
