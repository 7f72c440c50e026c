// The product of int8 values in TensorFlow Lite's fixed-point arithmetic.
#include <algorithm>

#include "kernels/isa/requantize.h"
#include "kernels/kernels.h"

namespace litebnn {

bool Int8Product::Set(const Int8Grid& first, const Int8Grid& second, const Int8Grid& product) {
  first_zero_point_ = first.zero_point;
  second_zero_point_ = second.zero_point;
  zero_point_ = product.zero_point;
  FixedPoint scale;
  // The factor that rescales products to output levels is computed in floats, as in the reference kernel.
  if (!ToFixedPoint(static_cast<double>(first.scale * second.scale / product.scale), &scale)) return false;
  multiplier_ = scale.multiplier;
  shift_ = scale.shift;
  return true;
}

int8_t Int8Product::operator()(int8_t first, int8_t second) const {
  const int64_t product = int64_t{first - first_zero_point_} * (second - second_zero_point_);
  const int32_t level = Requantize(product, {multiplier_, shift_}) + zero_point_;
  return static_cast<int8_t>(std::min(std::max(level, -128), 127));
}

}  // namespace litebnn
