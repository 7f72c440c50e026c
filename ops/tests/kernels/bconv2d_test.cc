// Compares the binary convolution of every ISA of this CPU with the reference, over many shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "kernels/isa/isa.h"
#include "kernels/platform/aligned_buffer.h"
#include "tests/kernels/isas.h"
#include "tests/kernels/run_bconv2d.h"

namespace litebnn {
namespace {

class Bconv2dTest : public IsaTest {};
LITEBNN_TEST_EVERY_ISA(Bconv2dTest);

// The value of a channel of packed rows: -1 for a set bit, else +1.
int32_t Sign(const std::vector<uint32_t>& packed, int32_t channels, int64_t row, int32_t channel) {
  return packed[static_cast<size_t>(row * PackedWords(channels) + channel / 32)] >> (channel % 32) & 1u ? -1 : 1;
}

// The reference counts different bits. This test computes the same sums as products of unpacked values.
TEST(ReferenceBconv, SumsProductsOfSigns) {
  for (const bool zero_padding : {false, true}) {
    for (const int32_t groups : {1, 2}) {
      BconvCase c;
      c.batch = 2;
      c.width = 7;
      c.channels_in = groups == 1 ? 45 : 128;
      c.channels_out = 6;
      c.groups = groups;
      c.filter_width = c.dilation_height = c.stride_width = 2;
      c.zero_padding = zero_padding;
      c.with_multiplier = c.with_bias = false;
      BconvData data;
      ASSERT_TRUE(MakeBconvData(c, &data));
      const Bconv2dGeometry& g = data.geometry;
      const std::vector<uint8_t> output = ReferenceBconv(c, data);
      const auto* sum = reinterpret_cast<const float*>(output.data());
      const int32_t group_channels = c.channels_in / groups;
      for (int32_t pixel = 0; pixel < c.batch * g.output_height * g.output_width; ++pixel) {
        const int32_t b = pixel / (g.output_height * g.output_width);
        const int32_t oy = pixel / g.output_width % g.output_height, ox = pixel % g.output_width;
        for (int32_t o = 0; o < c.channels_out; ++o) {
          int32_t expected = 0;
          for (int32_t tap = 0; tap < c.filter_height * c.filter_width; ++tap) {
            const int32_t y = oy * c.stride_height + tap / c.filter_width * c.dilation_height - g.pad_top;
            const int32_t x = ox * c.stride_width + tap % c.filter_width * c.dilation_width - g.pad_left;
            const bool inside = y >= 0 && y < c.height && x >= 0 && x < c.width;
            const int32_t padding = zero_padding ? 0 : 1;
            for (int32_t i = 0; i < group_channels; ++i) {
              const int32_t channel = o / (c.channels_out / groups) * group_channels + i;
              const int64_t row = (int64_t{b} * c.height + y) * c.width + x;
              expected += (inside ? Sign(data.input, c.channels_in, row, channel) : padding) *
                          Sign(data.filter, group_channels, int64_t{o} * c.filter_height * c.filter_width + tap, i);
            }
          }
          ASSERT_EQ(*sum++, static_cast<float>(expected)) << Describe(c) << ", pixel " << pixel << ", channel " << o;
        }
      }
    }
  }
}

// This test covers image rows that are longer than an ISA's block of pixels.
TEST_P(Bconv2dTest, WideImages) {
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

// This test covers large images with deep filters and few output channels.
TEST_P(Bconv2dTest, FewChannelsOfManyPixels) {
  struct Shape {
    int32_t height, width, channels_in, channels_out, filter_height, filter_width, dilation;
  };
  // The filter of the last shape is two rows high and one column wide, so only windows that are above each other have
  // common taps.
  const Shape shapes[] = {
      {20, 20, 192, 64, 3, 3, 1}, {24, 17, 320, 33, 3, 3, 1}, {31, 13, 250, 48, 3, 3, 2}, {40, 40, 864, 33, 2, 1, 1}};
  for (const Shape& shape : shapes) {
    BconvCase c;
    c.height = shape.height;
    c.width = shape.width;
    c.channels_in = shape.channels_in;
    c.channels_out = shape.channels_out;
    c.filter_height = shape.filter_height;
    c.filter_width = shape.filter_width;
    c.dilation_height = c.dilation_width = shape.dilation;
    c.zero_padding = shape.channels_in == 192;
    c.with_addend = shape.channels_in == 320;
    if (shape.channels_in == 250) c.output_type = Bconv2dOutputType::kInt8;
    ExpectAsReference(isa(), c, shape.channels_in == 192 ? 3 : 1);
  }
}

// This test covers images whose width leaves one, two or three columns beyond an ISA's tile. With many channels, ISAs
// compute these columns by a separate method.
TEST_P(Bconv2dTest, ColumnsLeftOver) {
  for (int32_t width : {5, 6, 7}) {
    for (bool zero_padding : {false, true}) {
      BconvCase c;
      c.height = 9;
      c.width = width;
      c.channels_in = 64;
      c.channels_out = 130;
      c.filter_height = c.filter_width = 3;
      c.zero_padding = zero_padding;
      c.with_addend = true;
      ExpectAsReference(isa(), c, zero_padding ? 3 : 1);
    }
  }
}

TEST_P(Bconv2dTest, EveryChannelCount) {
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

TEST_P(Bconv2dTest, RandomShapes) {
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
    c.channels_out = c.groups * pick({1, 5, 32, 40, 64, 64, 72, 128});
    c.same = pick({0, 1, 1}) == 1;
    c.zero_padding = pick({0, 1}) == 1;
    c.activation = kActivations[random() % 4];
    c.output_type = kOutputTypes[random() % 3];
    c.with_multiplier = pick({0, 1, 1}) == 1;
    c.with_bias = pick({0, 1, 1}) == 1;
    c.with_addend = c.output_type == Bconv2dOutputType::kFloat32 && pick({0, 1}) == 1;
    c.gates = c.with_addend && pick({0, 1}) == 1 ? pick({1, c.batch}) : 0;
    c.rectify_sum = c.with_addend && c.gates == 0 && pick({0, 1}) == 1;
    c.seed = static_cast<uint32_t>(random());
    // In a popcount, a tap in zero padding counts as half its channels. Half of an odd number of channels is no
    // integer. With zero padding, the op therefore rejects packed output if the number of channels is odd.
    const bool half_channel = c.output_type == Bconv2dOutputType::kBitpacked && c.channels_in / c.groups % 2 == 1;
    if (half_channel) c.zero_padding = false;
    ExpectAsReference(isa(), c, pick({1, 1, 2, 3}));
  }
}

// This test covers images with more output pixels than any ISA computes in one block.
TEST_P(Bconv2dTest, ManyPixels) {
  BconvCase c;
  c.height = c.width = 20;
  c.channels_out = 33;
  ExpectAsReference(isa(), c, 1);
  c.filter_height = c.filter_width = 1;
  ExpectAsReference(isa(), c, 1);
}

// This image has no padding, so the last window ends at the end of the input's memory.
TEST_P(Bconv2dTest, OneRow) {
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

// This test covers images with more rows, and more data in a row, than any ISA computes as one block.
TEST_P(Bconv2dTest, DeepImages) {
  for (int32_t channels_in : {1024, 2048, 2900}) {
    BconvCase c;
    c.height = 16;
    c.width = 14;
    c.channels_in = channels_in;
    c.channels_out = 20;
    ExpectAsReference(isa(), c, 1);
  }
}

// This test covers strides that lead far beyond the input.
TEST_P(Bconv2dTest, HugeStrides) {
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

// In this test, a filter has so many rows that a byte cannot count the nibbles of odd parity. All nibbles of the input
// have odd parity.
TEST_P(Bconv2dTest, TallFilters) {
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
      // The same filter also runs without padding, so that all taps of its windows are inside the image.
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

TEST_P(Bconv2dTest, DeepFilters) {
  for (int32_t channels_in : {512, 1024, 2050, 8200}) {
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

// This test covers filters too long for 16-bit sums. They are split within taps and between taps, and the pixels do not
// fill a tile.
TEST_P(Bconv2dTest, LongFilters) {
  const auto expect = [this](BconvCase c) {
    c.zero_padding = true;
    for (const Bconv2dOutputType output_type : kOutputTypes) {
      c.output_type = output_type;
      c.with_addend = c.rectify_sum = output_type == Bconv2dOutputType::kFloat32;
      ExpectAsReference(isa(), c, 2);
    }
  };
  BconvCase c;
  c.height = 2;
  c.width = 3;
  c.channels_in = 7330;
  c.channels_out = 5;
  expect(c);
  c.dilation_width = 2;
  expect(c);
  c.groups = 2;
  c.channels_in = 2 * 7360;
  c.channels_out = 6;
  expect(c);
  c = {};
  c.height = 1;
  c.width = 6;
  c.filter_height = c.filter_width = 1;
  c.channels_in = 131100;
  c.channels_out = 3;
  expect(c);
}

// This test covers windows with more and longer runs than some ISAs can count in one byte. A run is a sequence of
// contiguous words.
TEST_P(Bconv2dTest, ManyOrLongRuns) {
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

// This test covers windows whose popcounts are near powers of two, up to the maximum of a 16-bit counter and above it.
TEST_P(Bconv2dTest, EqualOrOppositeBits) {
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

// This test covers windows with the largest sums that fit the byte counters of some ISAs, and windows with one tap
// more.
TEST_P(Bconv2dTest, EqualBitsInLargeWindows) {
  for (int32_t channels_in : {896, 928}) {
    for (uint32_t filter_bits : {0u, ~0u, 0x11111111u}) {
      BconvCase c;
      c.height = 3;
      c.width = 5;
      c.channels_in = channels_in;
      c.channels_out = 64;
      c.same = false;
      BconvData data;
      ASSERT_TRUE(MakeBconvData(c, &data));
      std::fill(data.filter.begin(), data.filter.end(), filter_bits);
      std::fill(data.input.begin(), data.input.end(), 0u);
      EXPECT_TRUE(RunBconv(isa(), c, data, 1) == ReferenceBconv(c, data)) << Describe(c);
    }
  }
}

// This test covers adjacent windows with and without common taps. The layers have so many output channels that no ISA
// delegates them to another ISA.
TEST_P(Bconv2dTest, ManyChannelsOut) {
  for (int32_t stride : {1, 2, 3}) {
    for (int32_t dilation : {1, 2}) {
      for (int32_t channels_out : {384, 390, 704}) {
        BconvCase c;
        c.height = 6;
        c.width = 9;
        c.channels_in = 40;
        c.channels_out = channels_out;
        c.stride_height = c.stride_width = stride;
        c.dilation_height = c.dilation_width = dilation;
        ExpectAsReference(isa(), c, 2);
      }
    }
  }
}

// This test covers adjacent windows with many channels. A row of such windows may need more scratch memory than a
// single window.
TEST_P(Bconv2dTest, DeepWindowsBesideEachOther) {
  for (int32_t width : {7, 8, 14}) {
    BconvCase c;
    c.height = 4;
    c.width = width;
    c.channels_in = 320;
    c.channels_out = 390;
    ExpectAsReference(isa(), c, 1);
  }
}

TEST_P(Bconv2dTest, FollowsItsInputsShape) {
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
    conv->Run(*pool, data.input.data(), {}, output.data(), workspace.data());
    EXPECT_EQ(output, ReferenceBconv(c, data)) << Describe(c);
  }
}

// A thread pool that runs each loop as a whole on the calling thread. It tells the loop that this thread is the last of
// three.
class LastThread final : public ThreadPool {
 public:
  int num_threads() const override { return 3; }
  void ParallelFor(const LoopSize& size, Task task, void* context) override { task(context, 2, 0, size.count); }
};

constexpr size_t kScratchBytes = 3 * kAlignment;
BconvTask task_given = {};

TEST(Bconv2dWorkspace, HasScratchForEachThread) {
  Isa isa = kPortableIsa;
  isa.scratch_bytes = [](int32_t) { return kScratchBytes - 1; };
  isa.bconv = [](const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin,
                 int32_t channel_end) {
    task_given = task;
    kPortableIsa.bconv(task, pixel_begin, pixel_end, channel_begin, channel_end);
  };
  BconvData data;
  ASSERT_TRUE(MakeBconvData({}, &data));
  const auto conv = Bconv2d::Create(isa, data.spec, data.filter.data());
  ASSERT_TRUE(conv->Resize(data.geometry));
  EXPECT_EQ(conv->WorkspaceBytes(3) - conv->WorkspaceBytes(0), 3 * kScratchBytes);
  AlignedBuffer<uint8_t> workspace;
  ASSERT_TRUE(workspace.Allocate(conv->WorkspaceBytes(3)));
  std::vector<uint8_t> output(OutputBytes({}, data.geometry));
  LastThread pool;
  conv->Run(pool, data.input.data(), {}, output.data(), workspace.data());
  EXPECT_EQ(task_given.scratch, workspace.data() + conv->WorkspaceBytes(2));
  EXPECT_EQ(output, ReferenceBconv({}, data));
}

TEST(Bconv2dTask, SaysWhetherItsInputIsStaged) {
  BconvCase pixels;
  pixels.filter_height = pixels.filter_width = 1;
  Isa isa = kPortableIsa;
  isa.bconv = [](const BconvTask& task, int64_t, int64_t, int32_t, int32_t) { task_given = task; };
  const auto is_staged = [&isa](const BconvCase& c) {
    BconvData data;
    EXPECT_TRUE(MakeBconvData(c, &data));
    RunBconv(isa, c, data, 1);
    return task_given.is_staged;
  };
  // The portable ISA reads packed words as they are. Its input needs no staging, so the task's flag is_staged is always
  // true.
  EXPECT_TRUE(is_staged({}));
  EXPECT_TRUE(is_staged(pixels));
  isa.staged_bytes = [](int32_t tap_words) { return static_cast<size_t>(tap_words); };
  isa.stage = [](const uint32_t*, int64_t, int32_t, uint8_t*) {};
  EXPECT_TRUE(is_staged({}));
  EXPECT_TRUE(is_staged(pixels));
  isa.stages_pixels = true;
  EXPECT_TRUE(is_staged({}));
  EXPECT_FALSE(is_staged(pixels));
}

TEST_P(Bconv2dTest, EachThreadHasAnAlignedPartOfTheWorkspace) {
  BconvData data;
  ASSERT_TRUE(MakeBconvData({}, &data));
  const auto conv = Bconv2d::Create(isa(), data.spec, data.filter.data());
  ASSERT_NE(conv, nullptr);
  ASSERT_TRUE(conv->Resize(data.geometry));
  for (int threads : {1, 2, 3}) EXPECT_EQ(conv->WorkspaceBytes(threads) % kAlignment, 0u) << threads;
}

TEST_P(Bconv2dTest, OwnsWhatCorrectsItsPadding) {
  const auto owned_bytes = [this](const BconvCase& c) {
    BconvData data;
    EXPECT_TRUE(MakeBconvData(c, &data));
    const auto conv = Bconv2d::Create(isa(), data.spec, data.filter.data());
    EXPECT_NE(conv, nullptr);
    EXPECT_TRUE(conv->Resize(data.geometry));
    return conv->OwnedBytes();
  };
  BconvCase zeros;
  zeros.zero_padding = true;
  // Windows with zero padding need a correction for each output channel. It depends on which taps are padded, so there
  // are nine kinds of windows: at a corner, at an edge, or inside the image.
  EXPECT_GE(owned_bytes(zeros), owned_bytes({}) + 9 * 32 * sizeof(int32_t));
}

TEST_P(Bconv2dTest, RefusesAFrameOfManyGigabytes) {
  BconvCase c;
  BconvData data;
  ASSERT_TRUE(MakeBconvData(c, &data));
  data.spec.dilation_height_factor = data.spec.dilation_width_factor = 1 << 30;
  const auto conv = Bconv2d::Create(isa(), data.spec, data.filter.data());
  ASSERT_NE(conv, nullptr);
  EXPECT_FALSE(conv->Resize(data.geometry));
}

}  // namespace
}  // namespace litebnn
