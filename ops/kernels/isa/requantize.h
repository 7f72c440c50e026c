// The requantization of TensorFlow Lite's reference kernels: an int32 sum times a scale, rounded twice.
#pragma once

#include <cstdint>

namespace litebnn {

// A scale below 1 as multiplier * 2^-(31 + shift). The multiplier is 0 or at least 2^30.
struct FixedPoint {
  int32_t multiplier;
  int32_t shift;
};

// False if the scale is zero, negative or NaN, or rounds to 1 or more.
bool ToFixedPoint(double scale, FixedPoint* fixed);

// The scale as the nearest float, and a nudge: half of the unit of the first rounding. The result is the product, moved
// away from zero by the nudge and rounded to an integer. It may be wrong only if that is nearly halfway between two
// integers.
struct FloatScale {
  float multiplier, nudge;
};
FloatScale ToFloat(const FixedPoint& scale);

// |value| must be below 2^29. The high half of the doubled product is rounded first, halves upwards; the shift then
// rounds halves away from zero. TensorFlow Lite calls this MultiplyByQuantizedMultiplier.
static inline int32_t Requantize(int64_t value, const FixedPoint& scale) {
  const int64_t high = (value * scale.multiplier + (int64_t{1} << 30)) >> 31;
  if (scale.shift == 0) return static_cast<int32_t>(high);
  const int64_t half = int64_t{1} << (scale.shift - 1);
  return static_cast<int32_t>((high + half - (high < 0 ? 1 : 0)) >> scale.shift);
}

}  // namespace litebnn
