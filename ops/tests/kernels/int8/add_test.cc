// Compares float sums of int8 values with sums in TensorFlow Lite's fixed-point arithmetic, for all pairs of values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/isa/shared/lanes.h"
#include "kernels/kernels.h"

namespace litebnn {
namespace {

// Returns the rounded sum of two int8 values, computed with a multiplication and an addition that are each rounded to
// float.
int32_t Round(const FloatSum& sum, int32_t first, int32_t second) {
  const int32_t a = first, b = second - sum.second_zero_point;
  const float first_product = static_cast<float>(a) * sum.first_scale;
  int32_t rounded = OneLane::Round(first_product + static_cast<float>(b) * sum.second_scale);
  for (int32_t i = 0; i < sum.exceptions; ++i) {
    const FloatSum::Exception& e = sum.exception[i];
    if (e.first == a && e.second == b) rounded += e.difference;
  }
  return rounded;
}

// Returns the rounded sum of two int8 values, computed with fused multiply-adds, which round product and sum only once.
int32_t RoundFused(const FloatSum& sum, int32_t first, int32_t second) {
  const float offset = -static_cast<float>(sum.second_zero_point) * sum.second_scale;
  const float product = std::fma(static_cast<float>(second), sum.second_scale, offset);
  return static_cast<int32_t>(std::nearbyint(std::fma(static_cast<float>(first), sum.first_scale, product)));
}

// Scales of operands are up to four times the scale of the sum. Half of the scales are simple fractions of the sum's
// scale, with which many sums are halfway between two int8 values.
Int8SumSpec RandomSpec(std::mt19937& random) {
  const auto pick = [&random](int32_t low, int32_t high) {
    return low + static_cast<int32_t>(random() % static_cast<uint32_t>(high - low + 1));
  };
  const auto number = [&](int32_t low, int32_t high) { return static_cast<float>(pick(low, high)); };
  const float scale = number(1, 1000000) / 250000;
  const auto grid = [&] {
    const float ratio = pick(0, 1) == 0 ? number(1, 64) / 16 : number(1, 400000) / 100000;
    return Int8Grid{scale * ratio, pick(-128, 127)};
  };
  Int8SumSpec spec = {grid(), grid(), {scale, pick(-128, 127)}, -128, 127};
  if (pick(0, 2) == 0) spec.output_min = spec.sum.zero_point;
  return spec;
}

TEST(FloatSum, OfAllPairsEqualsTheFixedPointSum) {
  std::mt19937 random(1);
  int32_t found = 0, fused = 0, excepted = 0;
  for (int32_t i = 0; i < 300; ++i) {
    const Int8SumSpec spec = RandomSpec(random);
    Int8Sum sum;
    FloatSum floats;
    if (!sum.Set(spec) || !sum.FindFloatSum(&floats)) continue;
    ++found;
    fused += floats.may_fuse ? 1 : 0;
    excepted += floats.exceptions > 0 ? 1 : 0;
    int32_t wrong = 0;
    for (int32_t first = -128; first < 128; ++first) {
      for (int32_t second = -128; second < 128; ++second) {
        const int32_t expected = sum(static_cast<int8_t>(first), static_cast<int8_t>(second));
        const auto is_wrong = [&](int32_t rounded) {
          return OneLane::Clamp(rounded, floats.low, floats.high) + floats.zero_point != expected;
        };
        const int32_t operand = first - spec.first.zero_point;
        wrong += is_wrong(Round(floats, operand, second)) ? 1 : 0;
        wrong += floats.may_fuse && is_wrong(RoundFused(floats, operand, second)) ? 1 : 0;
      }
    }
    EXPECT_EQ(wrong, 0) << "scales " << spec.first.scale << ", " << spec.second.scale << ", " << spec.sum.scale;
  }
  EXPECT_GT(found, 200);
  EXPECT_GT(fused, 150);
  EXPECT_LT(fused, found);
  EXPECT_GT(excepted, 0);
}

}  // namespace
}  // namespace litebnn
