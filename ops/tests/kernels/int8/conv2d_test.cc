// Compares int8 convolutions with a simple loop over TensorFlow Lite's reference arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernels/isa/isa.h"
#include "kernels/platform/aligned_buffer.h"
#include "kernels/platform/thread_pool.h"
#include "kernels/platform/x86_cpu.h"
#include "tests/kernels/bconv2d_reference.h"
#include "tests/kernels/isas.h"

#if defined(__aarch64__)
#include "kernels/platform/arm_cpu.h"
#endif

namespace litebnn {
namespace {

struct Layer {
  Int8Conv2dSpec spec = {};
  Bconv2dGeometry geometry = {};
  std::vector<int8_t> filter, input;
  std::vector<int32_t> bias;
  std::vector<double> scales;

  void Point() {
    spec.filter = filter.data();
    spec.bias = bias.empty() ? nullptr : bias.data();
    spec.scales = scales.data();
  }
};

int32_t Between(std::mt19937& random, int32_t low, int32_t high) {
  return low + static_cast<int32_t>(random() % static_cast<uint32_t>(high - low + 1));
}

// TensorFlow Lite's function MultiplyByQuantizedMultiplier, computed step by step as in TensorFlow Lite.
int32_t MultiplyByQuantizedMultiplier(int32_t value, double scale) {
  int exponent = 0;
  auto multiplier = static_cast<int64_t>(std::round(std::frexp(scale, &exponent) * (int64_t{1} << 31)));
  if (multiplier == int64_t{1} << 31) multiplier /= 2, ++exponent;
  const int64_t product = int64_t{value} * multiplier;
  const int64_t nudge = product >= 0 ? int64_t{1} << 30 : 1 - (int64_t{1} << 30);
  const auto high = static_cast<int32_t>((product + nudge) / (int64_t{1} << 31));
  const auto mask = static_cast<int32_t>((int64_t{1} << -exponent) - 1);
  const int32_t remainder = high & mask, threshold = (mask >> 1) + (high < 0 ? 1 : 0);
  return (high >> -exponent) + (remainder > threshold ? 1 : 0);
}

std::vector<int8_t> Expected(const Layer& layer) {
  const Int8Conv2dSpec& s = layer.spec;
  const Bconv2dGeometry& g = layer.geometry;
  std::vector<int8_t> outputs;
  for (int32_t image = 0; image < g.batch; ++image) {
    for (int32_t y = 0; y < g.output_height; ++y) {
      for (int32_t x = 0; x < g.output_width; ++x) {
        for (int32_t channel = 0; channel < s.channels_out; ++channel) {
          int32_t sum = layer.bias.empty() ? 0 : layer.bias[static_cast<size_t>(channel)];
          for (int32_t ky = 0; ky < s.filter_height; ++ky) {
            for (int32_t kx = 0; kx < s.filter_width; ++kx) {
              const int32_t in_y = y * s.stride_height + ky - g.pad_top, in_x = x * s.stride_width + kx - g.pad_left;
              if (in_y < 0 || in_y >= g.input_height || in_x < 0 || in_x >= g.input_width) continue;
              const int32_t pixel = (image * g.input_height + in_y) * g.input_width + in_x;
              const int32_t tap = (channel * s.filter_height + ky) * s.filter_width + kx;
              const int32_t depth = s.channels_in / s.groups, first = channel / (s.channels_out / s.groups) * depth;
              for (int32_t c = 0; c < depth; ++c) {
                sum += (layer.input[static_cast<size_t>(pixel * s.channels_in + first + c)] - s.input_zero_point) *
                       layer.filter[static_cast<size_t>(tap * depth + c)];
              }
            }
          }
          const double scale = layer.scales[static_cast<size_t>(channel)];
          const int32_t level = MultiplyByQuantizedMultiplier(sum, scale) + s.output_zero_point;
          outputs.push_back(static_cast<int8_t>(std::min(std::max(level, s.output_min), s.output_max)));
        }
      }
    }
  }
  return outputs;
}

Layer RandomLayer(std::mt19937& random) {
  Layer layer;
  Int8Conv2dSpec& s = layer.spec;
  Bconv2dGeometry& g = layer.geometry;
  s.groups = random() % 3 == 0 ? Between(random, 2, 5) : 1;
  s.channels_in = s.groups * Between(random, 1, s.groups == 1 ? 4 : 9);
  s.channels_out = s.groups * Between(random, 1, 90 / s.groups);
  s.filter_height = Between(random, 1, 7);
  s.filter_width = Between(random, 1, 7);
  s.stride_height = Between(random, 1, 3);
  s.stride_width = Between(random, 1, 3);
  s.input_zero_point = Between(random, -128, 127);
  s.output_zero_point = Between(random, -128, 127);
  s.output_min = random() % 2 == 0 ? -128 : s.output_zero_point;
  s.output_max = random() % 2 == 0 ? 127 : std::max(s.output_min, Between(random, -128, 127));
  g.batch = Between(random, 1, 2);
  g.input_height = Between(random, 1, 12);
  g.input_width = Between(random, 1, 30);
  if (random() % 2 == 0 && g.input_height >= s.filter_height && g.input_width >= s.filter_width) {
    g.output_height = (g.input_height - s.filter_height) / s.stride_height + 1;
    g.output_width = (g.input_width - s.filter_width) / s.stride_width + 1;
  } else {
    g.output_height = SameOutput(g.input_height, s.stride_height);
    g.output_width = SameOutput(g.input_width, s.stride_width);
    g.pad_top = PadBefore(g.input_height, g.output_height, s.filter_height, s.stride_height, 1);
    g.pad_left = PadBefore(g.input_width, g.output_width, s.filter_width, s.stride_width, 1);
  }
  const int32_t depth = s.filter_height * s.filter_width * (s.channels_in / s.groups);
  const bool extreme = random() % 4 == 0;
  const auto fill = [&](std::vector<int8_t>& values, int32_t count, int32_t low) {
    for (int32_t i = 0; i < count; ++i) {
      const int32_t value = extreme ? (random() % 2 == 0 ? low : 127) : Between(random, low, 127);
      values.push_back(static_cast<int8_t>(value));
    }
  };
  fill(layer.filter, s.channels_out * depth, -127);
  fill(layer.input, g.batch * g.input_height * g.input_width * s.channels_in, -128);
  const bool has_bias = random() % 4 != 0;
  for (int32_t channel = 0; channel < s.channels_out; ++channel) {
    if (has_bias) layer.bias.push_back(Between(random, -20000, 20000));
    // A third of the ratios of scales are powers of two, for which sums are often halfway between two int8 values.
    const double fraction = random() % 3 == 0 ? 0.5 : Between(random, 500000, 999999) * 1e-6;
    layer.scales.push_back(std::ldexp(fraction, -Between(random, 0, 14)));
  }
  layer.Point();
  return layer;
}

std::vector<int8_t> Run(const Isa& isa, const Layer& layer, int threads) {
  const std::unique_ptr<Int8Conv2d> conv = Int8Conv2d::Create(isa, layer.spec);
  const std::unique_ptr<ThreadPool> pool = ThreadPool::Create(threads);
  EXPECT_TRUE(conv->Resize(layer.geometry));
  AlignedBuffer<uint8_t> workspace;
  EXPECT_TRUE(workspace.Allocate(conv->WorkspaceBytes()));
  const Bconv2dGeometry& g = layer.geometry;
  std::vector<int8_t> output(static_cast<size_t>(g.batch * g.output_height * g.output_width * layer.spec.channels_out));
  conv->Run(*pool, layer.input.data(), output.data(), workspace.data());
  return output;
}

void ExpectReferenceResults(const Isa& isa) {
  std::mt19937 random(7);
  for (int i = 0; i < 150; ++i) {
    const Layer layer = RandomLayer(random);
    ASSERT_TRUE(Int8Conv2d::Supports(layer.spec)) << i;
    ASSERT_EQ(Run(isa, layer, 1 + i % 2), Expected(layer)) << i;
  }
}

class Int8Conv2dTest : public IsaTest {};
LITEBNN_TEST_EVERY_ISA(Int8Conv2dTest);

TEST_P(Int8Conv2dTest, GivesTheReferencesBits) { ExpectReferenceResults(isa()); }

#if LITEBNN_X86 || defined(__aarch64__)
// This test covers the kernels without dot products on every CPU. An ISA would not choose them by itself on a CPU that
// has dot products.
TEST(Int8Conv2d, KernelsWithoutDotProductsGiveTheReferencesBits) {
  Isa isa = *FindIsa("portable");
#if LITEBNN_X86
  if (CpuHasAvx2()) {
    isa.int8_conv = []() -> const Int8ConvKernel& { return kAvx2Int8Conv; };
    ExpectReferenceResults(isa);
  }
#else
  isa.int8_conv = []() -> const Int8ConvKernel& { return kNeon64Int8Conv; };
  ExpectReferenceResults(isa);
#endif
}
#endif

TEST(Int8Conv2d, RefusesWhatItCannotCompute) {
  std::mt19937 random(1);
  const Layer supported = RandomLayer(random);
  const auto supports = [&](const std::function<void(Layer&)>& change) {
    Layer layer = supported;
    change(layer);
    layer.Point();
    return Int8Conv2d::Supports(layer.spec);
  };
  EXPECT_TRUE(supports([](Layer&) {}));
  EXPECT_FALSE(supports([](Layer& layer) { layer.filter.back() = -128; }));
  EXPECT_FALSE(supports([](Layer& layer) { layer.scales.back() = 1.0; }));
  EXPECT_FALSE(supports([](Layer& layer) { layer.scales.back() = 0.0; }));
  EXPECT_FALSE(supports([](Layer& layer) { layer.scales.back() = std::nan(""); }));
  EXPECT_FALSE(supports([](Layer& layer) {
    layer.bias.assign(static_cast<size_t>(layer.spec.channels_out), std::numeric_limits<int32_t>::min());
  }));
}

TEST(Int8Conv2d, ReportsImagesThatAreTooLarge) {
  std::mt19937 random(1);
  Layer layer = RandomLayer(random);
  const std::unique_ptr<Int8Conv2d> conv = Int8Conv2d::Create(*FindIsa("portable"), layer.spec);
  layer.geometry.output_height = layer.geometry.output_width = 1 << 20;
  EXPECT_FALSE(conv->Resize(layer.geometry));
}

}  // namespace
}  // namespace litebnn
