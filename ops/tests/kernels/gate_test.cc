// Compares the pass that multiplies images by gates with a simple loop.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/platform/thread_pool.h"
#include "tests/kernels/isas.h"

namespace litebnn {
namespace {

class GateTest : public IsaTest {};
LITEBNN_TEST_EVERY_ISA(GateTest);

struct Images {
  int64_t images, rows, columns;
  int32_t channels;
  int64_t values() const { return images * rows * columns * channels; }
};

// An operand of the gate pass. The flags are the axes (images, rows, pixels) over which the operand is broadcast.
struct Operand {
  std::vector<float> values;
  int64_t image_stride, row_stride, pixel_stride;
  GateOperand View() const { return {values.data(), image_stride, row_stride, pixel_stride}; }
  float At(const Images& size, int64_t index) const {
    const int64_t pixel = index / size.channels, row = pixel / size.columns;
    return values[static_cast<size_t>(row / size.rows * image_stride + row % size.rows * row_stride +
                                      pixel % size.columns * pixel_stride + index % size.channels)];
  }
};

class Values {
 public:
  explicit Values(uint32_t seed) : random_(seed) {}
  int64_t UpTo(uint32_t most) { return static_cast<int64_t>(1 + random_() % most); }
  bool Toss() { return random_() % 2 == 0; }

  // Random floats without subnormal numbers, because 32-bit NEON flushes them to zero. NaNs are optional, because
  // 32-bit NEON does not preserve their bits.
  std::vector<float> Floats(int64_t count, bool with_nan) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kSpecial[] = {0.0f, -0.0f, kInfinity, -kInfinity, std::numeric_limits<float>::lowest()};
    std::vector<float> numbers(static_cast<size_t>(count));
    for (float& value : numbers) {
      const uint32_t kind = random_() % 16;
      value = kind < 5 ? kSpecial[kind] : static_cast<float>(random_() % 101) - 50.0f;
      if (with_nan && kind == 5) value = NAN;
    }
    return numbers;
  }

  Operand Draw(const Images& size) {
    const bool images = Toss(), rows = Toss(), columns = Toss();
    const int64_t row = (columns ? size.columns : 1) * size.channels, image = (rows ? size.rows : 1) * row;
    const bool with_nan = images && rows && columns;
    return {Floats((images ? size.images : 1) * image, with_nan), images ? image : 0, rows ? row : 0,
            columns ? size.channels : 0};
  }

 private:
  std::mt19937 random_;
};

// True if two floats have the same bits, or if both are NaN.
bool AreSame(float a, float b) { return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof(a)) == 0; }

TEST_P(GateTest, GateImages) {
  Values values(8);
  for (const int threads : {1, 3}) {
    const auto pool = ThreadPool::Create(threads);
    for (int i = 0; i < 300; ++i) {
      // Every tenth image is so large that several threads share it.
      const bool is_large = i % 10 == 0;
      const Images size = {values.UpTo(3), values.UpTo(is_large ? 17 : 4), values.UpTo(is_large ? 17 : 5),
                           static_cast<int32_t>(values.UpTo(is_large ? 300 : 70))};
      const Operand input = values.Draw(size), gate = values.Draw(size);
      const std::vector<float> slope = values.Floats(size.channels, false),
                               addend = values.Floats(size.values(), false);
      const bool adds = values.Toss(), rectify_product = values.Toss(), rectify_sum = values.Toss();
      std::vector<float> output(static_cast<size_t>(size.values()), 12345.0f);
      GateImages(isa(), *pool,
                 {size.images, size.rows, size.columns, size.channels, input.View(), gate.View(), rectify_product,
                  slope.data(), adds ? addend.data() : nullptr, rectify_sum, output.data()});
      for (int64_t k = 0; k < size.values(); ++k) {
        float value = input.At(size, k) * gate.At(size, k);
        if (rectify_product && !(value > 0.0f)) value = 0.0f;
        if (value < 0.0f) value *= slope[static_cast<size_t>(k % size.channels)];
        if (adds) value += addend[static_cast<size_t>(k)];
        if (adds && rectify_sum && !(value > 0.0f)) value = 0.0f;
        ASSERT_TRUE(AreSame(output[static_cast<size_t>(k)], value))
            << k << ": " << output[static_cast<size_t>(k)] << " is not " << value;
      }
    }
  }
}

TEST_P(GateTest, OverwritesAnOperandOfItsShape) {
  Values values(9);
  const auto pool = ThreadPool::Create(1);
  const Images size = {2, 5, 3, 37};
  const std::vector<float> input = values.Floats(size.values(), false), gate = values.Floats(size.channels, false);
  const std::vector<float> slope = values.Floats(size.channels, false), addend = values.Floats(size.values(), false);
  const auto run = [&](const float* from, const float* added, float* output) {
    const int64_t row = size.columns * size.channels;
    const GateOperand image = {from, size.rows * row, row, size.channels};
    GateImages(isa(), *pool,
               {size.images,
                size.rows,
                size.columns,
                size.channels,
                image,
                {gate.data(), 0, 0, 0},
                false,
                slope.data(),
                added,
                false,
                output});
  };
  std::vector<float> apart(input.size()), over_input = input, over_addend = addend;
  run(input.data(), addend.data(), apart.data());
  run(over_input.data(), addend.data(), over_input.data());
  run(input.data(), over_addend.data(), over_addend.data());
  for (size_t k = 0; k < apart.size(); ++k) {
    ASSERT_TRUE(AreSame(over_input[k], apart[k]) && AreSame(over_addend[k], apart[k])) << k;
  }
}

}  // namespace
}  // namespace litebnn
