#include "tflite/ops/broadcast_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

namespace litebnn {
namespace {

using Shape = std::vector<int32_t>;

int64_t Values(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// Returns the index of an element in a tensor of shape `shape`. It is the element that appears at `index` when the
// tensor is broadcast to the shape `larger`.
int64_t Repeated(const Shape& shape, const Shape& larger, int64_t index) {
  int64_t position = 0, stride = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t size = shape[shape.size() - 1 - i];
    const int64_t larger_size = larger[larger.size() - 1 - i];
    if (size > 1) position += index % larger_size * stride;
    index /= larger_size;
    stride *= size;
  }
  return position;
}

void ExpectSums(const Shape& first, const Shape& second, const Shape& expected, bool rectify, int num_threads) {
  const std::unique_ptr<ThreadPool> pool = ThreadPool::Create(num_threads);
  BroadcastSum sum;
  Shape shape;
  ASSERT_TRUE(sum.Resize(first, second, &shape));
  ASSERT_EQ(shape, expected);
  std::vector<float> a(static_cast<size_t>(Values(first))), b(static_cast<size_t>(Values(second)));
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i) - 5.0f;
  for (size_t i = 0; i < b.size(); ++i) b[i] = 1000.0f * (static_cast<float>(i) - 1.0f);
  std::vector<float> found(static_cast<size_t>(Values(shape)));
  sum.Run(*pool, a.data(), b.data(), rectify, found.data());
  for (size_t i = 0; i < found.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    const float value =
        a[static_cast<size_t>(Repeated(first, shape, index))] + b[static_cast<size_t>(Repeated(second, shape, index))];
    ASSERT_EQ(found[i], rectify && value < 0.0f ? 0.0f : value) << i;
  }
}

TEST(BroadcastSum, RepeatsEitherAlongAnyDimensions) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    Shape first, second, expected;
    for (auto rank = 1 + random() % 5; rank > 0; --rank) {
      const auto size = static_cast<int32_t>(1 + random() % 4);
      const auto repeats = random() % 4;
      expected.push_back(size);
      first.push_back(repeats == 0 ? 1 : size);
      second.push_back(repeats == 1 ? 1 : size);
    }
    // The shape of an operand may lack leading dimensions; the test removes a random number of them.
    const auto left_out = static_cast<std::ptrdiff_t>(random() % (expected.size() + 1));
    second.erase(second.begin(), second.begin() + left_out);
    std::copy_n(first.begin(), left_out, expected.begin());
    ExpectSums(first, second, expected, random() % 2 == 0, 1);
    if (HasFailure()) break;
  }
}

TEST(BroadcastSum, SplitsAmongThreads) {
  ExpectSums({1, 40, 30, 33}, {33}, {1, 40, 30, 33}, true, 3);
  ExpectSums({3, 1, 1, 7}, {3, 50, 51, 1}, {3, 50, 51, 7}, false, 4);
}

TEST(BroadcastSum, RefusesShapesThatDoNotGoTogether) {
  BroadcastSum sum;
  Shape shape;
  EXPECT_FALSE(sum.Resize({2, 3}, {2, 2}, &shape));
  EXPECT_FALSE(sum.Resize({3, 1}, {2, 1}, &shape));
  EXPECT_FALSE(sum.Resize({4}, {2, 3}, &shape));
}

TEST(BroadcastSum, RectifiesWhatIsNoNumber) {
  const std::unique_ptr<ThreadPool> pool = ThreadPool::Create(1);
  const float a[] = {std::numeric_limits<float>::quiet_NaN(), -2.0f, 1.0f, -0.0f}, b[] = {0.0f, 2.0f, 2.0f, -0.0f};
  float found[4];
  BroadcastSum sum;
  Shape shape;
  ASSERT_TRUE(sum.Resize({4}, {4}, &shape));
  sum.Run(*pool, a, b, true, found);
  EXPECT_EQ(found[0], 0.0f);
  EXPECT_EQ(found[1], 0.0f);
  EXPECT_EQ(found[2], 3.0f);
  EXPECT_FALSE(std::signbit(found[3]));
}

}  // namespace
}  // namespace litebnn
