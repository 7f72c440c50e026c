// Compares MayTie with a search over all dot products.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernels/bconv2d/packed_filter.h"

namespace litebnn {
namespace {

bool Ties(float multiplier, float bias, int32_t depth, int32_t zero_point) {
  for (int32_t dot = -depth; dot <= depth; ++dot) {
    const float product = static_cast<float>(dot) * multiplier, value = product + bias;
    const auto low = static_cast<float>(-128 - zero_point), high = static_cast<float>(127 - zero_point);
    if (value > low && value < high && value - std::floor(value) == 0.5f) return true;
  }
  return false;
}

TEST(MayTie, FindsEveryTie) {
  std::mt19937 random(11);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  int ties = 0, none = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto depth = static_cast<int32_t>(1 + random() % 700),
               zero_point = static_cast<int32_t>(random() % 256) - 128;
    float multiplier = std::ldexp(uniform(random), static_cast<int>(random() % 9) - 5);
    float bias = std::ldexp(uniform(random), static_cast<int>(random() % 12));
    // Multipliers and biases with few digits often give ties.
    if (i % 3 > 0) multiplier = std::round(multiplier * 1024.0f) / 1024.0f;
    if (i % 3 > 1) bias = std::round(bias * 1024.0f) / 1024.0f;
    if (multiplier == 0.0f) continue;
    const bool expected = Ties(multiplier, bias, depth, zero_point);
    // Small multipliers may be suspected without a tie.
    const bool found = MayTie(multiplier, bias, depth, zero_point);
    EXPECT_TRUE(found == expected || (found && std::abs(multiplier) < 0x1p-9f))
        << multiplier << " " << bias << " " << depth << " " << zero_point;
    ++(expected ? ties : none);
  }
  EXPECT_GT(ties, 1000);
  EXPECT_GT(none, 1000);
}

TEST(MayTie, SuspectsNumbersThatItCannotCheck) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  for (const float multiplier : {0.0f, 1e-30f, 1e-5f, kNaN}) EXPECT_TRUE(MayTie(multiplier, 0.5f, 9, 0));
  for (const float bias : {1e30f, -kInfinity, kNaN}) EXPECT_TRUE(MayTie(0.1f, bias, 9, 0));
}

}  // namespace
}  // namespace litebnn
