#include <cmath>

#include "kernels/bconv2d/packed_filter.h"

namespace litebnn {
namespace {

// Compilers do not vectorize the loop below by themselves at -O2.
using Doubles = double __attribute__((vector_size(16)));
using Masks = int64_t __attribute__((vector_size(16)));

constexpr int32_t kLevels = 256;
// If this number is added to a double whose magnitude is below 2^51, the sum is rounded to an integer.
constexpr double kRoundsToInteger = 0x1.8p52;

template <typename Value>
Value Nearest(Value value) {
  return (value + kRoundsToInteger) - kRoundsToInteger;
}

// True if one of the numbers (first + i) * factor, for i from 0 to kLevels - 1, is at most `tolerance` away from an
// integer.
bool IsAnyNearInteger(double first, double factor, double tolerance) {
  Doubles number = {first, first + 1.0};
  Masks found = {0, 0};
  for (int32_t i = 0; i < kLevels; i += 2, number += 2.0) {
    const Doubles product = number * factor, distance = product - Nearest(product);
    found |= (distance <= tolerance) & (distance >= -tolerance);
  }
  return (found[0] | found[1]) != 0;
}

}  // namespace

bool MayTie(float multiplier, float bias, int32_t depth, int32_t zero_point) {
  const int32_t low = -128 - zero_point;
  const double inverse = 1.0 / static_cast<double>(multiplier), offset = static_cast<double>(bias);
  // A tie's dot product differs by at most this number from the quotient (tie - offset) / multiplier. The difference
  // comes from rounding the product and the sum. Ties and levels have a magnitude below 512.
  const double tolerance = (512.0 + std::abs(offset)) * 0x1p-23 * std::abs(inverse) + 1e-6;
  if (!(tolerance < 0.25)) return true;
  if (!IsAnyNearInteger(low + 0.5 - offset, inverse, tolerance)) return false;
  for (int32_t i = 0; i < kLevels - 1; ++i) {
    const double tie = low + i + 0.5, dot = Nearest((tie - offset) * inverse);
    if (std::abs(dot) > depth) continue;
    const float product = static_cast<float>(dot) * multiplier;
    if (product + bias == static_cast<float>(tie)) return true;
  }
  return false;
}

}  // namespace litebnn
