// The file computes the requantization of TensorFlow Lite's reference kernels: an int32 sum is multiplied by a scale,
// and rounded twice.
#pragma once

#include <cstdint>

namespace litebnn {

// A FixedPoint is a scale below 1, written as multiplier * 2^-(31 + shift). The multiplier is 0 or at least 2^30.
struct FixedPoint {
  int32_t multiplier;
  int32_t shift;
};

// Rounds a scale to a FixedPoint. Returns false if the scale is zero, negative or NaN, or is 1 or more after rounding.
bool ToFixedPoint(double scale, FixedPoint* fixed);

// A FloatScale is a scale for requantization in floats. `multiplier` is the float nearest to the scale. `nudge` is half
// a unit of the first rounding in Requantize. The product of a sum and `multiplier` is moved away from zero by `nudge`,
// and rounded to an integer. This integer can differ from Requantize's result only if the moved product is nearly
// halfway between two integers.
struct FloatScale {
  float multiplier, nudge;
};
FloatScale ToFloat(const FixedPoint& scale);

// Multiplies `value`, whose magnitude must be below 2^29, by `scale` as TensorFlow Lite's MultiplyByQuantizedMultiplier
// does. The high half of the doubled product is rounded first, halves upwards. The shift then rounds halves away from
// zero.
static inline int32_t Requantize(int64_t value, const FixedPoint& scale) {
  const int64_t high = (value * scale.multiplier + (int64_t{1} << 30)) >> 31;
  if (scale.shift == 0) return static_cast<int32_t>(high);
  const int64_t half = int64_t{1} << (scale.shift - 1);
  return static_cast<int32_t>((high + half - (high < 0 ? 1 : 0)) >> scale.shift);
}

}  // namespace litebnn
