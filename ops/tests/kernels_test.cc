// Every ISA this CPU can run, over a sweep of shapes, against the contract.
#include "kernels/kernels.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/platform/aligned_buffer.h"
#include "kernels/platform/thread_pool.h"
#include "tests/kernels_reference.h"

namespace litebnn {
namespace {

std::vector<std::string> IsaNames() {
  std::vector<std::string> names;
  std::istringstream list(AvailableIsas());
  for (std::string name; std::getline(list, name, ',');) names.push_back(name.substr(name.find_first_not_of(' ')));
  return names;
}

class KernelsTest : public testing::TestWithParam<std::string> {
 protected:
  const Isa& isa() const { return *FindIsa(GetParam().c_str()); }
};

INSTANTIATE_TEST_SUITE_P(Isas, KernelsTest, testing::ValuesIn(IsaNames()), [](const auto& name) { return name.param; });

// Memory that ends where a page begins which nothing may touch.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t bytes) : bytes_(bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    mapped_bytes_ = (bytes + page - 1) / page * page + page;
    mapped_ = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(mapped_, MAP_FAILED);
    guard_ = static_cast<uint8_t*>(mapped_) + mapped_bytes_ - page;
    EXPECT_EQ(mprotect(guard_, page, PROT_NONE), 0);
    // What was there before must not show through.
    if (bytes > 0) std::memset(data(), 0xA5, bytes);
  }
  // Null where `values` is empty.
  template <typename T>
  explicit GuardedBuffer(const std::vector<T>& values) : GuardedBuffer(values.size() * sizeof(T)) {
    if (!values.empty()) std::memcpy(data(), values.data(), bytes_);
  }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer() { munmap(mapped_, mapped_bytes_); }

  uint8_t* data() { return bytes_ == 0 ? nullptr : guard_ - bytes_; }
  template <typename T>
  T* As() {
    return reinterpret_cast<T*>(data());
  }

 private:
  size_t bytes_, mapped_bytes_ = 0;
  void* mapped_ = nullptr;
  uint8_t* guard_ = nullptr;
};

// `in_place`: the output overwrites the addend.
std::vector<uint8_t> RunBconv(const Isa& isa, const BconvCase& c, const BconvData& data, int threads,
                              bool in_place = false) {
  const auto pool = ThreadPool::Create(threads);
  const auto conv = Bconv2d::Create(isa, data.spec, data.filter.data());
  EXPECT_NE(pool, nullptr);
  EXPECT_NE(conv, nullptr);
  EXPECT_TRUE(conv->Resize(data.geometry));
  GuardedBuffer input(data.input), addend(data.addend), workspace(conv->WorkspaceBytes(threads));
  const size_t output_bytes = OutputBytes(c, data.geometry);
  GuardedBuffer output(output_bytes);
  if (in_place) std::memcpy(output.data(), addend.data(), output_bytes);
  conv->Run(*pool, input.As<uint32_t>(), in_place ? output.As<float>() : addend.As<float>(), output.data(),
            workspace.data());
  return std::vector<uint8_t>(output.data(), output.data() + output_bytes);
}

void ExpectAsReference(const Isa& isa, const BconvCase& c, int threads) {
  BconvData data;
  if (!MakeBconvData(c, &data)) return;
  const std::vector<uint8_t> expected = ReferenceBconv(c, data);
  EXPECT_TRUE(RunBconv(isa, c, data, threads) == expected) << Describe(c) << ", threads " << threads;
  if (data.addend.empty()) return;
  EXPECT_TRUE(RunBconv(isa, c, data, threads, true) == expected) << Describe(c) << ", in place";
}

constexpr Bconv2dOutputType kOutputTypes[] = {Bconv2dOutputType::kFloat32, Bconv2dOutputType::kInt8,
                                              Bconv2dOutputType::kBitpacked};
constexpr Activation kActivations[] = {Activation::kNone, Activation::kRelu, Activation::kReluN1To1,
                                       Activation::kRelu6};

// Longer rows than ISAs take at a time.
TEST_P(KernelsTest, BconvOfWideImages) {
  for (int32_t width : {449, 500, 1001, 1300}) {
    for (int32_t stride : {1, 2}) {
      for (int threads : {1, 2}) {
        BconvCase c;
        c.height = 3;
        c.width = width;
        c.channels_in = 40;
        c.channels_out = 9;
        c.stride_width = stride;
        ExpectAsReference(isa(), c, threads);
      }
    }
  }
}

TEST_P(KernelsTest, BconvOfEveryChannelCount) {
  for (int32_t channels_in : {1, 31, 32, 33, 64, 96, 100, 128, 160, 256}) {
    for (int32_t channels_out : {1, 7, 31, 32, 33, 64, 70, 96, 128, 130}) {
      for (const Bconv2dOutputType output_type : kOutputTypes) {
        BconvCase c;
        c.channels_in = channels_in;
        c.channels_out = channels_out;
        c.output_type = output_type;
        c.height = 3;
        c.seed = static_cast<uint32_t>(channels_in * 1000 + channels_out);
        ExpectAsReference(isa(), c, 1);
      }
    }
  }
}

TEST_P(KernelsTest, BconvOfRandomShapes) {
  std::mt19937 random(7);
  const auto pick = [&random](std::initializer_list<int32_t> values) {
    return values.begin()[random() % values.size()];
  };
  for (int i = 0; i < 400; ++i) {
    BconvCase c;
    c.batch = pick({1, 1, 2, 3});
    c.height = pick({1, 2, 4, 7, 9, 12});
    c.width = pick({1, 2, 5, 7, 8, 12, 13, 16});
    c.filter_height = pick({1, 2, 3, 5});
    c.filter_width = pick({1, 2, 3, 5});
    c.stride_height = pick({1, 1, 2, 3});
    c.stride_width = pick({1, 1, 2, 3});
    c.dilation_height = pick({1, 1, 2, 3});
    c.dilation_width = pick({1, 1, 2, 3});
    c.groups = pick({1, 1, 1, 2, 3});
    c.channels_in = c.groups == 1 ? pick({3, 32, 40, 64, 96, 128}) : c.groups * pick({32, 64});
    c.channels_out = c.groups * pick({1, 5, 32, 40, 64, 72});
    c.same = pick({0, 1, 1}) == 1;
    c.zero_padding = pick({0, 1}) == 1;
    c.activation = kActivations[random() % 4];
    c.output_type = kOutputTypes[random() % 3];
    c.with_multiplier = pick({0, 1, 1}) == 1;
    c.with_bias = pick({0, 1, 1}) == 1;
    c.with_addend = c.output_type == Bconv2dOutputType::kFloat32 && pick({0, 1}) == 1;
    c.rectify_sum = c.with_addend && pick({0, 1}) == 1;
    c.seed = static_cast<uint32_t>(random());
    // Half of an odd number of channels is no whole number: the op refuses it.
    const bool half_channel = c.output_type == Bconv2dOutputType::kBitpacked && c.channels_in / c.groups % 2 == 1;
    if (half_channel) c.zero_padding = false;
    ExpectAsReference(isa(), c, pick({1, 1, 2, 3}));
  }
}

// Whole tiles of pixels and channels, and what is left beside them.
TEST_P(KernelsTest, BconvWithEveryActivationAndAddend) {
  for (const Activation activation : kActivations) {
    for (int32_t channels_out : {64, 70, 128}) {
      for (int addend = 0; addend < 3; ++addend) {
        BconvCase c;
        c.height = 1;
        c.width = 13;
        c.channels_out = channels_out;
        c.activation = activation;
        c.with_addend = addend > 0;
        c.rectify_sum = addend == 2;
        ExpectAsReference(isa(), c, 1);
      }
    }
  }
}

// More pixels than any ISA takes at a time.
TEST_P(KernelsTest, BconvOfManyPixels) {
  BconvCase c;
  c.height = c.width = 20;
  c.channels_out = 33;
  ExpectAsReference(isa(), c, 1);
  c.filter_height = c.filter_width = 1;
  ExpectAsReference(isa(), c, 1);
}

// Without padding, so that windows end where the input does.
TEST_P(KernelsTest, BconvOfOneRow) {
  for (int32_t width = 3; width < 12; ++width) {
    for (int32_t channels_in : {32, 64, 300}) {
      for (int32_t stride : {1, 2}) {
        BconvCase c;
        c.same = false;
        c.height = c.filter_height;
        c.width = width;
        c.channels_in = channels_in;
        c.stride_width = stride;
        ExpectAsReference(isa(), c, 1);
        ExpectAsReference(isa(), c, 2);
      }
    }
  }
}

// More rows, and more of what is made of a row, than any ISA takes at a time.
TEST_P(KernelsTest, BconvOfDeepImages) {
  for (int32_t channels_in : {1024, 2048, 2900}) {
    BconvCase c;
    c.height = 16;
    c.width = 14;
    c.channels_in = channels_in;
    c.channels_out = 20;
    ExpectAsReference(isa(), c, 1);
  }
}

// Steps of windows that lead far beyond the input.
TEST_P(KernelsTest, BconvWithHugeStrides) {
  for (int32_t channels_in : {32, 64, 96, 128, 256}) {
    for (int32_t filter : {1, 3}) {
      for (int32_t stride : {1 << 26, 1 << 28, 1 << 30}) {
        for (int32_t width : {1, 4}) {
          BconvCase c;
          c.width = width;
          c.channels_in = channels_in;
          c.filter_height = c.filter_width = filter;
          c.stride_width = stride;
          ExpectAsReference(isa(), c, 1);
          c.stride_height = stride;
          ExpectAsReference(isa(), c, 1);
        }
      }
    }
  }
}

// More rows than a byte can count for, with nothing but odd nibbles, and runs that are shorter than a block.
TEST_P(KernelsTest, BconvOfTallFilters) {
  for (int32_t filter_height : {15, 120, 127, 128, 200}) {
    BconvCase c;
    c.height = 3;
    c.width = 4;
    c.filter_height = filter_height;
    c.filter_width = 2;
    BconvData data;
    ASSERT_TRUE(MakeBconvData(c, &data));
    for (uint32_t input : {0x11111111u, 0x7E7E7E7Eu}) {
      std::fill(data.input.begin(), data.input.end(), input);
      EXPECT_TRUE(RunBconv(isa(), c, data, 1) == ReferenceBconv(c, data)) << Describe(c);
      // Without padding, all taps are inside.
      BconvCase inside = c;
      inside.same = false;
      inside.height = filter_height + 1;
      inside.width = 5;
      BconvData inside_data;
      ASSERT_TRUE(MakeBconvData(inside, &inside_data));
      std::fill(inside_data.input.begin(), inside_data.input.end(), input);
      EXPECT_TRUE(RunBconv(isa(), inside, inside_data, 1) == ReferenceBconv(inside, inside_data)) << Describe(inside);
    }
  }
}

TEST_P(KernelsTest, BconvOfDeepFilters) {
  for (int32_t channels_in : {512, 1024, 2050}) {
    for (const Bconv2dOutputType output_type : kOutputTypes) {
      BconvCase c;
      c.height = 2;
      c.width = 3;
      c.channels_in = channels_in;
      c.channels_out = 72;
      c.output_type = output_type;
      ExpectAsReference(isa(), c, 1);
    }
  }
}

// More runs, and longer ones, than some ISAs can count bits of in a byte.
TEST_P(KernelsTest, BconvOfManyOrLongRuns) {
  BconvCase c;
  c.channels_out = 33;
  c.filter_height = c.filter_width = 13;
  c.dilation_width = 2;
  ExpectAsReference(isa(), c, 1);
  c = {};
  c.height = c.width = 2;
  c.channels_in = 20000;
  c.filter_height = c.filter_width = 1;
  ExpectAsReference(isa(), c, 1);
}

// Sums near every power of two up to the deepest that a 16-bit counter holds, and beyond it.
TEST_P(KernelsTest, BconvOfEqualOrOppositeBits) {
  for (int32_t channels_in : {64, 256, 8160, 26208, 32768, 65535, 65536, 70000, 140000}) {
    for (uint32_t filter_bits : {0u, ~0u, 0x11111111u, 0xEEEEEEEEu}) {
      for (uint32_t input_bits : {0u, 0x11111111u}) {
        BconvCase c;
        c.height = c.filter_height = c.filter_width = 1;
        c.channels_in = channels_in;
        c.channels_out = 40;
        BconvData data;
        ASSERT_TRUE(MakeBconvData(c, &data));
        std::fill(data.filter.begin(), data.filter.end(), filter_bits);
        std::fill(data.input.begin(), data.input.end(), input_bits);
        if (channels_in % 32 != 0) {
          const uint32_t mask = (1u << (channels_in % 32)) - 1u;
          const auto words = static_cast<size_t>(PackedWords(channels_in));
          for (size_t last = words - 1; last < data.input.size(); last += words) data.input[last] &= mask;
          for (size_t last = words - 1; last < data.filter.size(); last += words) data.filter[last] &= mask;
        }
        EXPECT_TRUE(RunBconv(isa(), c, data, 1) == ReferenceBconv(c, data)) << Describe(c);
      }
    }
  }
}

TEST_P(KernelsTest, BconvOutputDoesNotDependOnThreads) {
  for (const Bconv2dOutputType output_type : kOutputTypes) {
    for (int32_t groups : {1, 2}) {
      for (int32_t size : {1, 7, 14}) {
        BconvCase c;
        c.height = c.width = size;
        c.groups = groups;
        c.channels_in = 64 * groups;
        c.channels_out = 200 * groups;
        c.zero_padding = true;
        c.output_type = output_type;
        BconvData data;
        ASSERT_TRUE(MakeBconvData(c, &data));
        const std::vector<uint8_t> expected = RunBconv(isa(), c, data, 1);
        for (int threads : {2, 3, 5}) EXPECT_EQ(RunBconv(isa(), c, data, threads), expected) << Describe(c);
      }
    }
  }
}

TEST_P(KernelsTest, BconvFollowsItsInputsShape) {
  BconvCase c;
  c.zero_padding = true;
  BconvData first;
  ASSERT_TRUE(MakeBconvData(c, &first));
  const auto pool = ThreadPool::Create(2);
  const auto conv = Bconv2d::Create(isa(), first.spec, first.filter.data());
  for (int32_t size : {5, 9, 2}) {
    c.height = c.width = size;
    BconvData data;
    ASSERT_TRUE(MakeBconvData(c, &data));
    data.filter = first.filter;
    data.multiplier = first.multiplier;
    data.bias = first.bias;
    ASSERT_TRUE(conv->Resize(data.geometry));
    AlignedBuffer<uint8_t> workspace;
    ASSERT_TRUE(workspace.Allocate(conv->WorkspaceBytes(2)));
    std::vector<uint8_t> output(OutputBytes(c, data.geometry));
    conv->Run(*pool, data.input.data(), nullptr, output.data(), workspace.data());
    EXPECT_EQ(output, ReferenceBconv(c, data)) << Describe(c);
  }
}

TEST_P(KernelsTest, BconvRefusesAFrameOfManyGigabytes) {
  BconvCase c;
  BconvData data;
  ASSERT_TRUE(MakeBconvData(c, &data));
  data.spec.dilation_height_factor = data.spec.dilation_width_factor = 1 << 30;
  const auto conv = Bconv2d::Create(isa(), data.spec, data.filter.data());
  ASSERT_NE(conv, nullptr);
  EXPECT_FALSE(conv->Resize(data.geometry));
}

TEST_P(KernelsTest, Int8OutputSaturatesAndTakesNan) {
  BconvCase c;
  c.output_type = Bconv2dOutputType::kInt8;
  c.channels_out = 69;
  BconvData data;
  ASSERT_TRUE(MakeBconvData(c, &data));
  const float special[] = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN()};
  for (size_t i = 0; i < data.bias.size(); ++i) data.bias[i] = special[i % 3];
  const std::vector<uint8_t> output = RunBconv(isa(), c, data, 1);
  // The number of channels is a multiple of three.
  for (size_t i = 0; i < output.size(); ++i) EXPECT_EQ(static_cast<int8_t>(output[i]), i % 3 == 0 ? 127 : -128);
}

TEST_P(KernelsTest, RectifiedSumOfNanIsZero) {
  for (Activation activation : kActivations) {
    for (int32_t channels_out : {64, 69}) {
      BconvCase c;
      c.channels_out = channels_out;
      c.activation = activation;
      c.with_addend = c.rectify_sum = true;
      BconvData data;
      ASSERT_TRUE(MakeBconvData(c, &data));
      for (size_t i = 0; i < data.bias.size(); i += 3) data.bias[i] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_TRUE(RunBconv(isa(), c, data, 1) == ReferenceBconv(c, data)) << Describe(c);
    }
  }
}

TEST_P(KernelsTest, PackFloat32Signs) {
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

TEST_P(KernelsTest, PackInt8AndBool) {
  std::mt19937 random(4);
  const auto pool = ThreadPool::Create(2);
  for (int32_t channels : {1, 3, 8, 16, 31, 32, 33, 64, 100, 128, 1000}) {
    for (int32_t zero_point : {-128, -5, 0, 1, 127}) {
      const int64_t rows = 5;
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

TEST_P(KernelsTest, UnpackSignsUndoesPackSigns) {
  std::mt19937 random(5);
  const auto pool = ThreadPool::Create(1);
  for (int32_t channels : {1, 31, 32, 33, 100}) {
    const int64_t rows = 4;
    const std::vector<uint32_t> packed = RandomPacked(random, rows, channels);
    const auto values = static_cast<size_t>(rows * channels);
    std::vector<uint32_t> again(packed.size());
    std::vector<float> floats(values);
    UnpackFloat32Signs(isa(), *pool, packed.data(), rows, channels, floats.data());
    for (float value : floats) EXPECT_EQ(std::fabs(value), 1.0f);
    PackFloat32Signs(isa(), *pool, floats.data(), rows, channels, again.data());
    EXPECT_EQ(again, packed);
    std::vector<int8_t> bytes(values);
    UnpackInt8Signs(isa(), *pool, packed.data(), rows, channels, 11, -5, bytes.data());
    PackInt8Signs(isa(), *pool, bytes.data(), rows, channels, 3, again.data());
    EXPECT_EQ(again, packed);
    std::vector<uint8_t> flags(values);
    UnpackBoolSigns(isa(), *pool, packed.data(), rows, channels, reinterpret_cast<bool*>(flags.data()));
    PackBoolSigns(isa(), *pool, reinterpret_cast<bool*>(flags.data()), rows, channels, again.data());
    EXPECT_EQ(again, packed);
  }
}

// `tap(index)` is called for each tap inside of the input, with the index of its first value.
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

// Same padding, or valid where it can be.
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

// What `value(first values of the taps, channel)` gives for each value of the output.
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

TEST_P(KernelsTest, BMaxPool2d) {
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

TEST_P(KernelsTest, MaxPool2d) {
  std::mt19937 random(7);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // No numbers that are too small for 32-bit NEON.
  const float special[] = {0.0f, -0.0f, NAN, -NAN, kInfinity, -kInfinity, std::numeric_limits<float>::lowest()};
  for (int threads : {1, 3}) {
    const auto pool = ThreadPool::Create(threads);
    for (int i = 0; i < 200; ++i) {
      // Enough for several threads in some.
      const MaxPool2dGeometry g = RandomPool(random, i % 10 == 0 ? 2000 : 150);
      const float floor = i % 3 == 0 ? 0.0f : -kInfinity;
      std::vector<float> input(static_cast<size_t>(g.batch * g.input_height * g.input_width * g.channels));
      for (float& value : input) {
        value = random() % 4 == 0 ? special[random() % std::size(special)] : static_cast<float>(random() % 101) - 50.0f;
      }
      const auto expected = ExpectedPool<float>(g, [&](const std::vector<size_t>& taps, size_t channel) {
        float largest = floor;
        for (size_t tap : taps) {
          if (input[tap + channel] > largest) largest = input[tap + channel];
        }
        return largest;
      });
      std::vector<float> output(expected.size(), 12345.0f);
      MaxPool2d(isa(), *pool, g, input.data(), floor, output.data());
      // Bytes, for zeros have a sign.
      EXPECT_EQ(std::memcmp(output.data(), expected.data(), expected.size() * sizeof(float)), 0);
    }
  }
}

TEST(FindIsa, NamesAreChecked) {
  EXPECT_EQ(FindIsa("no such ISA"), nullptr);
  for (const std::string& name : IsaNames()) EXPECT_EQ(name, IsaName(*FindIsa(name.c_str())));
}

// Set by who emulates a CPU and knows which.
TEST(FindIsa, TheCpuDecides) {
  const char* expected = std::getenv("EXPECTED_ISA");
  if (expected == nullptr) GTEST_SKIP() << "EXPECTED_ISA is not set";
  EXPECT_STREQ(IsaName(*FindIsa(nullptr)), expected);
}

TEST(ThreadPool, EveryElementIsDoneOnceByContiguousParts) {
  for (int threads : {1, 2, 3, 7}) {
    const auto pool = ThreadPool::Create(threads);
    ASSERT_NE(pool, nullptr);
    EXPECT_EQ(pool->num_threads(), threads);
    // Many short loops, so that workers are met both spinning and asleep.
    for (int64_t count = 0; count < 300; ++count) {
      std::vector<int> done(static_cast<size_t>(count), 0);
      pool->ParallelFor(
          count, 4,
          [](void* context, int, int64_t begin, int64_t end) {
            EXPECT_EQ(begin % 4, 0);
            for (int64_t i = begin; i < end; ++i) ++(*static_cast<std::vector<int>*>(context))[static_cast<size_t>(i)];
          },
          &done);
      EXPECT_EQ(std::count(done.begin(), done.end(), 1), count);
    }
  }
}

TEST(ThreadPool, RefusesNoThreads) { EXPECT_EQ(ThreadPool::Create(0), nullptr); }

}  // namespace
}  // namespace litebnn
