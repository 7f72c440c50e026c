// Tests of the packing and unpacking of signs.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/platform/thread_pool.h"
#include "tests/kernels/bconv2d_reference.h"
#include "tests/kernels/isas.h"

namespace litebnn {
namespace {

class BitpackTest : public IsaTest {};
LITEBNN_TEST_EVERY_ISA(BitpackTest);

TEST_P(BitpackTest, PackFloat32Signs) {
  std::mt19937 random(3);
  const float special[] = {0.0f,
                           -0.0f,
                           1e-45f,
                           -1e-45f,
                           std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN(),
                           -std::numeric_limits<float>::quiet_NaN()};
  const auto pool = ThreadPool::Create(2);
  for (int32_t channels : {1, 3, 4, 8, 31, 32, 33, 63, 64, 96, 100, 128, 1000}) {
    for (int64_t rows : {1, 2, 7, 33}) {
      std::vector<float> input(static_cast<size_t>(rows * channels));
      for (float& value : input) {
        value = random() % 4 == 0 ? special[random() % 8] : static_cast<float>(static_cast<int32_t>(random()));
      }
      std::vector<uint32_t> expected(static_cast<size_t>(rows * PackedWords(channels)), 0);
      for (int64_t i = 0; i < rows * channels; ++i) {
        if (!(input[static_cast<size_t>(i)] < 0.0f)) continue;
        expected[static_cast<size_t>(i / channels * PackedWords(channels) + i % channels / 32)] |=
            1u << (i % channels % 32);
      }
      std::vector<uint32_t> output(expected.size(), ~0u);
      PackFloat32Signs(isa(), *pool, input.data(), rows, channels, output.data());
      EXPECT_EQ(output, expected) << rows << " rows of " << channels;
    }
  }
}

TEST_P(BitpackTest, PackAffineSigns) {
  std::mt19937 random(6);
  // The values are few and small: some products are exact and some rounded, sums are often 0, and nothing is subnormal.
  const auto value = [&random] { return static_cast<float>(static_cast<int>(random() % 7) - 3) * 1.1f; };
  const auto pool = ThreadPool::Create(2);
  for (int32_t channels : {1, 3, 8, 31, 32, 33, 64, 96, 100, 160, 1000}) {
    // There are so many rows that each of the two threads gets some.
    const int64_t rows = channels == 1000 ? 300 : 7;
    std::vector<float> input(static_cast<size_t>(rows * channels)), multiplier(static_cast<size_t>(channels)), addend;
    for (float& each : input) each = random() % 20 == 0 ? std::numeric_limits<float>::quiet_NaN() : value();
    for (float& each : multiplier) each = value();
    for (float each : multiplier) addend.push_back(random() % 2 == 0 ? -1.1f * each : value());
    std::vector<float> computed = input;
    for (size_t i = 0; i < input.size(); ++i) {
      const size_t channel = i % static_cast<size_t>(channels);
      computed[i] *= multiplier[channel];
      computed[i] += addend[channel];
    }
    const int64_t words = PackedWords(channels);
    std::vector<uint32_t> packed(static_cast<size_t>(rows * words));
    PackFloat32Signs(isa(), *pool, computed.data(), rows, channels, packed.data());
    for (int64_t gap : {0, 1, 5}) {
      // The packing must not change memory between two rows.
      std::vector<uint32_t> expected(static_cast<size_t>(rows * (words + gap)), ~0u), output = expected;
      for (int64_t row = 0; row < rows; ++row) {
        std::copy_n(packed.data() + row * words, words, expected.data() + row * (words + gap));
      }
      PackAffineSigns(isa(), *pool, input.data(), multiplier.data(), addend.data(), rows, channels, output.data(),
                      words + gap);
      EXPECT_EQ(output, expected) << channels << " channels, " << gap << " words between";
    }
  }
}

TEST_P(BitpackTest, PackInt8AndBool) {
  std::mt19937 random(4);
  const auto pool = ThreadPool::Create(2);
  for (int32_t channels : {1, 3, 8, 16, 31, 32, 33, 64, 100, 128, 1000}) {
    for (int32_t zero_point : {-128, -5, 0, 1, 127}) {
      const int64_t rows = channels == 1000 ? 300 : 5;
      std::vector<int8_t> input(static_cast<size_t>(rows * channels));
      for (int8_t& value : input) value = static_cast<int8_t>(random());
      std::vector<uint8_t> flags(input.size());
      for (uint8_t& value : flags) value = random() % 2;
      std::vector<uint32_t> expected(static_cast<size_t>(rows * PackedWords(channels)), 0), expected_bool = expected;
      for (int64_t i = 0; i < rows * channels; ++i) {
        const auto word = static_cast<size_t>(i / channels * PackedWords(channels) + i % channels / 32);
        const uint32_t bit = 1u << (i % channels % 32);
        if (input[static_cast<size_t>(i)] < zero_point) expected[word] |= bit;
        if (flags[static_cast<size_t>(i)] == 0) expected_bool[word] |= bit;
      }
      std::vector<uint32_t> output(expected.size(), ~0u);
      PackInt8Signs(isa(), *pool, input.data(), rows, channels, zero_point, output.data());
      EXPECT_EQ(output, expected) << channels << " channels, zero point " << zero_point;
      PackBoolSigns(isa(), *pool, reinterpret_cast<const bool*>(flags.data()), rows, channels, output.data());
      EXPECT_EQ(output, expected_bool) << channels << " channels";
    }
  }
}

TEST_P(BitpackTest, PackInt8Comparisons) {
  std::mt19937 random(7);
  const auto pool = ThreadPool::Create(2);
  for (int32_t channels : {1, 3, 16, 31, 32, 33, 64, 100, 128, 1000}) {
    // There are so many rows that each of the two threads gets some.
    const int64_t rows = channels == 1000 ? 300 : 5;
    std::vector<int8_t> input(static_cast<size_t>(rows * channels)), thresholds(static_cast<size_t>(channels));
    for (int8_t& value : input) value = static_cast<int8_t>(random());
    // Some thresholds are the lowest or the highest int8 level, and some are equal to values of the input.
    for (int8_t& threshold : thresholds) threshold = random() % 4 == 0 ? -128 : random() % 4 == 0 ? 127 : input[0];
    const int64_t words = PackedWords(channels);
    std::vector<uint32_t> inverted(static_cast<size_t>(words), 0);
    for (int32_t channel = 0; channel < channels; ++channel) {
      inverted[static_cast<size_t>(channel / 32)] |= static_cast<uint32_t>(random() % 2) << (channel % 32);
    }
    for (const int64_t gap : {0, 1, 5}) {
      // The packing must not change memory between two rows.
      const int64_t output_words = words + gap;
      std::vector<uint32_t> output(static_cast<size_t>(rows * output_words), ~0u), expected = output;
      for (int64_t row = 0; row < rows; ++row) std::fill_n(expected.data() + row * output_words, words, 0u);
      for (int64_t i = 0; i < rows * channels; ++i) {
        const auto channel = static_cast<size_t>(i % channels);
        const bool is_inverted = (inverted[channel / 32] >> (channel % 32) & 1) != 0;
        if ((input[static_cast<size_t>(i)] < thresholds[channel]) == is_inverted) continue;
        expected[static_cast<size_t>(i / channels * output_words) + channel / 32] |= 1u << (channel % 32);
      }
      PackInt8Comparisons(isa(), *pool, input.data(), rows, channels, thresholds.data(), inverted.data(), output.data(),
                          output_words);
      EXPECT_EQ(output, expected) << channels << " channels, " << gap << " words between";
    }
  }
}

TEST_P(BitpackTest, UnpackSignsUndoesPackSigns) {
  std::mt19937 random(5);
  const auto pool = ThreadPool::Create(2);
  for (int32_t channels : {1, 31, 32, 33, 100}) {
    // The number of rows is large enough that every thread gets some.
    const int64_t rows = 100;
    const std::vector<uint32_t> packed = RandomPacked(random, rows, channels);
    const auto values = static_cast<size_t>(rows * channels);
    std::vector<uint32_t> again(packed.size());
    std::vector<float> floats(values);
    UnpackSigns(*pool, packed.data(), rows, channels, 1.0f, -1.0f, floats.data());
    for (float value : floats) EXPECT_EQ(std::fabs(value), 1.0f);
    PackFloat32Signs(isa(), *pool, floats.data(), rows, channels, again.data());
    EXPECT_EQ(again, packed);
    std::vector<int8_t> bytes(values);
    UnpackSigns(*pool, packed.data(), rows, channels, int8_t{11}, int8_t{-5}, bytes.data());
    PackInt8Signs(isa(), *pool, bytes.data(), rows, channels, 3, again.data());
    EXPECT_EQ(again, packed);
    UnpackSigns(*pool, packed.data(), rows, channels, int8_t{1}, int8_t{0}, bytes.data());
    PackBoolSigns(isa(), *pool, reinterpret_cast<bool*>(bytes.data()), rows, channels, again.data());
    EXPECT_EQ(again, packed);
  }
}

}  // namespace
}  // namespace litebnn
