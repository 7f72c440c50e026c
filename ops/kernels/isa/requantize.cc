#include "kernels/isa/requantize.h"

#include <cmath>

namespace litebnn {

bool ToFixedPoint(double scale, FixedPoint* fixed) {
  if (!std::isfinite(scale) || scale <= 0.0) return false;
  int exponent = 0;
  auto multiplier = static_cast<int64_t>(std::round(std::frexp(scale, &exponent) * 0x1p31));
  if (multiplier == int64_t{1} << 31) {
    multiplier /= 2;
    ++exponent;
  }
  if (exponent > 0) return false;
  *fixed = exponent < -31 ? FixedPoint{0, 0} : FixedPoint{static_cast<int32_t>(multiplier), -exponent};
  return true;
}

FloatScale ToFloat(const FixedPoint& scale) {
  const double exact = std::ldexp(static_cast<double>(scale.multiplier), -31 - scale.shift);
  // If the shift is 0, Requantize rounds only once, as the float arithmetic does, so `nudge` is 0.
  const double nudge = scale.shift == 0 ? 0.0 : std::ldexp(0.5, -scale.shift);
  return {static_cast<float>(exact), static_cast<float>(nudge)};
}

}  // namespace litebnn
