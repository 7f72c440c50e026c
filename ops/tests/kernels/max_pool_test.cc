// Compares max pools of packed signs, floats and int8 values, and average pools of floats and int8 values, with a
// direct implementation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/platform/thread_pool.h"
#include "tests/kernels/bconv2d_reference.h"
#include "tests/kernels/isas.h"

namespace litebnn {
namespace {

class MaxPoolTest : public IsaTest {};
LITEBNN_TEST_EVERY_ISA(MaxPoolTest);

// Calls tap(index) for each tap of a window that is inside the input. `index` is the index of the tap's first value.
template <typename Tap>
void ForEachTap(const MaxPool2dGeometry& g, int32_t image, int32_t output_y, int32_t output_x, Tap tap) {
  for (int32_t ky = 0; ky < g.filter_height; ++ky) {
    for (int32_t kx = 0; kx < g.filter_width; ++kx) {
      const int32_t y = output_y * g.stride_height + ky - g.pad_top, x = output_x * g.stride_width + kx - g.pad_left;
      if (y < 0 || y >= g.input_height || x < 0 || x >= g.input_width) continue;
      tap(static_cast<size_t>(((image * g.input_height + y) * g.input_width + x) * g.channels));
    }
  }
}

// A random pool, with SAME padding, or VALID padding if the filter fits the image.
MaxPool2dGeometry RandomPool(std::mt19937& random, uint32_t most_channels) {
  const auto up_to = [&random](uint32_t most) { return static_cast<int32_t>(1 + random() % most); };
  MaxPool2dGeometry g = {up_to(2), up_to(9), up_to(9), up_to(most_channels), 0, 0, up_to(4), up_to(4), up_to(3),
                         up_to(3), 0,        0};
  if (random() % 2 == 0 && g.filter_height <= g.input_height && g.filter_width <= g.input_width) {
    g.output_height = (g.input_height - g.filter_height) / g.stride_height + 1;
    g.output_width = (g.input_width - g.filter_width) / g.stride_width + 1;
    return g;
  }
  g.output_height = SameOutput(g.input_height, g.stride_height);
  g.output_width = SameOutput(g.input_width, g.stride_width);
  g.pad_top = PadBefore(g.input_height, g.output_height, g.filter_height, g.stride_height, 1);
  g.pad_left = PadBefore(g.input_width, g.output_width, g.filter_width, g.stride_width, 1);
  return g;
}

// Calls value(taps, channel) for each output value. `taps` has, for each tap, the index of its first value.
template <typename T, typename Value>
std::vector<T> ExpectedPool(const MaxPool2dGeometry& g, Value value) {
  std::vector<T> expected;
  for (int32_t image = 0; image < g.batch; ++image) {
    for (int32_t y = 0; y < g.output_height; ++y) {
      for (int32_t x = 0; x < g.output_width; ++x) {
        std::vector<size_t> taps;
        ForEachTap(g, image, y, x, [&taps](size_t index) { taps.push_back(index); });
        for (size_t channel = 0; channel < static_cast<size_t>(g.channels); ++channel) {
          expected.push_back(value(taps, channel));
        }
      }
    }
  }
  return expected;
}

TEST_P(MaxPoolTest, BMaxPool2d) {
  std::mt19937 random(6);
  const auto pool = ThreadPool::Create(2);
  for (int i = 0; i < 100; ++i) {
    const MaxPool2dGeometry g = RandomPool(random, 9);
    const std::vector<uint32_t> input =
        RandomPacked(random, int64_t{g.batch} * g.input_height * g.input_width, g.channels * 32);
    const auto expected = ExpectedPool<uint32_t>(g, [&input](const std::vector<size_t>& taps, size_t channel) {
      uint32_t bits = ~0u;
      for (size_t tap : taps) bits &= input[tap + channel];
      return bits;
    });
    std::vector<uint32_t> output(expected.size(), 0x5A5A5A5A);
    BMaxPool2d(*pool, g, input.data(), output.data());
    EXPECT_EQ(output, expected);
  }
}

TEST_P(MaxPoolTest, MaxPool2dOfInt8) {
  std::mt19937 random(8);
  const auto pool = ThreadPool::Create(2);
  const auto level = [&random] { return static_cast<int8_t>(random() % 256 - 128); };
  for (int i = 0; i < 200; ++i) {
    const MaxPool2dGeometry g = RandomPool(random, i % 10 == 0 ? 2000 : 150);
    std::vector<int8_t> input(static_cast<size_t>(int64_t{g.batch} * g.input_height * g.input_width * g.channels));
    std::generate(input.begin(), input.end(), level);
    const int8_t first = level(), second = level(), least = std::min(first, second), most = std::max(first, second);
    const auto expected = ExpectedPool<int8_t>(g, [&](const std::vector<size_t>& taps, size_t channel) {
      int8_t largest = -128;
      for (size_t tap : taps) largest = std::max(largest, input[tap + channel]);
      return std::clamp(largest, least, most);
    });
    std::vector<int8_t> output(expected.size());
    MaxPool2d(isa(), *pool, g, input.data(), least, most, output.data());
    EXPECT_EQ(output, expected);
  }
}

TEST_P(MaxPoolTest, AveragePool2d) {
  std::mt19937 random(9);
  const auto pool = ThreadPool::Create(2);
  const auto level = [&random] { return static_cast<int8_t>(random() % 256 - 128); };
  for (int i = 0; i < 300; ++i) {
    MaxPool2dGeometry g = RandomPool(random, i % 10 == 0 ? 2000 : 150);
    // Some windows have about as many taps as fit in 16-bit sums.
    if (i % 5 == 0) {
      g.input_height = g.filter_height = 15 + static_cast<int32_t>(random() % 2);
      g.input_width = g.filter_width = 15 + static_cast<int32_t>(random() % 4);
      g.output_height = g.output_width = 1;
      g.pad_top = g.pad_left = 0;
    }
    std::vector<int8_t> input(static_cast<size_t>(int64_t{g.batch} * g.input_height * g.input_width * g.channels));
    std::generate(input.begin(), input.end(), level);
    if (i % 4 == 0) std::fill(input.begin(), input.end(), static_cast<int8_t>(i % 8 == 0 ? -128 : 127));
    const int8_t first = level(), second = level(), least = std::min(first, second), most = std::max(first, second);
    const auto expected = ExpectedPool<int8_t>(g, [&](const std::vector<size_t>& taps, size_t channel) {
      int32_t sum = 0;
      for (size_t tap : taps) sum += input[tap + channel];
      const auto count = static_cast<int32_t>(taps.size());
      const int32_t average = (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
      return static_cast<int8_t>(std::clamp<int32_t>(average, least, most));
    });
    std::vector<int8_t> output(expected.size());
    AveragePool2d(isa(), *pool, g, input.data(), least, most, output.data());
    EXPECT_EQ(output, expected);
  }
}

TEST_P(MaxPoolTest, AveragePool2dOfFloats) {
  std::mt19937 random(10);
  const auto value = [&random] { return static_cast<float>(static_cast<int>(random() % 2001) - 1000) * 0.11f; };
  for (int i = 0; i < 150; ++i) {
    MaxPool2dGeometry g = RandomPool(random, i % 10 == 0 ? 600 : 100);
    // Two thirds of the pools have a single window, most of them for the whole image.
    if (i % 3 != 0) {
      g.output_height = g.output_width = 1;
      g.pad_top = g.pad_left = 0;
      g.filter_height = i % 5 == 0 ? std::min(g.filter_height, g.input_height) : g.input_height;
      g.filter_width = i % 5 == 1 ? std::min(g.filter_width, g.input_width) : g.input_width;
    }
    if (i % 7 == 1) {
      g.pad_top = g.pad_left = 1;
      g.filter_height += 2;
      g.filter_width += 1;
    }
    const auto channels = static_cast<size_t>(g.channels);
    const int64_t pixels = int64_t{g.batch} * g.input_height * g.input_width;
    std::vector<float> input(static_cast<size_t>(pixels) * channels), multiplier(channels), addend(channels);
    for (std::vector<float>* values : {&input, &multiplier, &addend}) {
      std::generate(values->begin(), values->end(), value);
    }
    if (i % 4 == 0) input[random() % input.size()] = std::numeric_limits<float>::infinity();
    std::vector<float> normed = input;
    for (size_t k = 0; k < normed.size(); ++k) {
      normed[k] *= multiplier[k % channels];
      normed[k] += addend[k % channels];
    }
    const size_t row_size = static_cast<size_t>(g.input_width) * channels;
    const auto expected = ExpectedPool<float>(g, [&](const std::vector<size_t>& taps, size_t channel) {
      float sum = 0.0f;
      for (size_t tap = 0; tap < taps.size();) {
        const size_t row = taps[tap] / row_size;
        float row_sum = 0.0f;
        for (; tap < taps.size() && taps[tap] / row_size == row; ++tap) row_sum += normed[taps[tap] + channel];
        sum += row_sum;
      }
      return sum / static_cast<float>(taps.size());
    });
    const auto words = static_cast<size_t>(pixels * PackedWords(g.channels));
    for (int threads : {1, 3}) {
      const auto pool = ThreadPool::Create(threads);
      std::vector<uint32_t> expected_signs(words), signs(words, ~0u);
      PackFloat32Signs(isa(), *pool, normed.data(), pixels, g.channels, expected_signs.data());
      std::vector<float> row_sums(static_cast<size_t>(g.batch * g.input_height) * channels);
      for (const bool packs : {true, false}) {
        std::vector<float> output(expected.size(), 12345.0f);
        AveragePool2d(isa(), *pool, g,
                      {input.data(), multiplier.data(), addend.data(), packs ? signs.data() : nullptr, output.data(),
                       row_sums.data()});
        EXPECT_EQ(output, expected) << "pool " << i << ", " << threads << " threads";
        EXPECT_EQ(signs, expected_signs) << "pool " << i;
      }
    }
  }
}

TEST_P(MaxPoolTest, MaxPool2d) {
  std::mt19937 random(7);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // The special values include no subnormal numbers, because 32-bit NEON flushes them to zero.
  const float special[] = {0.0f, -0.0f, NAN, -NAN, kInfinity, -kInfinity, std::numeric_limits<float>::lowest()};
  for (int threads : {1, 3}) {
    const auto pool = ThreadPool::Create(threads);
    for (int i = 0; i < 200; ++i) {
      // Every tenth pool is so large that several threads share it.
      const MaxPool2dGeometry g = RandomPool(random, i % 10 == 0 ? 2000 : 150);
      const float floor = i % 3 == 0 ? 0.0f : -kInfinity;
      const auto values = [&](int64_t count) {
        std::vector<float> numbers(static_cast<size_t>(count));
        for (float& value : numbers) {
          const bool is_special = random() % 4 == 0;
          value = is_special ? special[random() % std::size(special)] : static_cast<float>(random() % 101) - 50.0f;
        }
        return numbers;
      };
      const std::vector<float> input = values(int64_t{g.batch} * g.input_height * g.input_width * g.channels);
      const std::vector<float> multiplier = values(g.channels);
      std::vector<float> addend = values(g.channels);
      // The addend must not contain a NaN, because 32-bit NEON does not preserve the bits of a NaN.
      std::replace_if(addend.begin(), addend.end(), [](float value) { return std::isnan(value); }, 1.0f);
      const bool multiplies = random() % 2 == 0, adds = random() % 2 == 0, rectify = random() % 2 == 0;
      const auto expected = ExpectedPool<float>(g, [&](const std::vector<size_t>& taps, size_t channel) {
        float largest = floor;
        for (size_t tap : taps) {
          const float value = multiplies ? input[tap + channel] * multiplier[channel] : input[tap + channel];
          if (value > largest) largest = value;
        }
        const float sum = adds ? largest + addend[channel] : largest;
        return adds && rectify && !(sum > 0.0f) ? 0.0f : sum;
      });
      // In the pool's output, each pixel may be followed by values that do not belong to the output.
      const size_t pixels = expected.size() / static_cast<size_t>(g.channels), others = random() % 3;
      const size_t stride = static_cast<size_t>(g.channels) + others;
      std::vector<float> output(pixels * stride, 12345.0f), whole = output;
      for (size_t k = 0; k < expected.size(); ++k) {
        whole[k / static_cast<size_t>(g.channels) * stride + k % static_cast<size_t>(g.channels)] = expected[k];
      }
      MaxPool2d(isa(), *pool, g,
                {input.data(), multiplies ? multiplier.data() : nullptr, floor, adds ? addend.data() : nullptr, rectify,
                 output.data(), static_cast<int32_t>(stride)});
      // The test compares bytes and not numbers, because 0.0 equals -0.0.
      EXPECT_EQ(std::memcmp(output.data(), whole.data(), whole.size() * sizeof(float)), 0);
    }
  }
}

}  // namespace
}  // namespace litebnn
