#include "kernels/bconv2d/frame.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace litebnn {
namespace {

Bconv2dSpec Spec(int32_t filter) {
  Bconv2dSpec spec = {};
  spec.channels_in = spec.channels_out = 32;
  spec.groups = 1;
  spec.filter_height = spec.filter_width = filter;
  spec.stride_height = spec.stride_width = spec.dilation_height_factor = spec.dilation_width_factor = 1;
  return spec;
}

// The bytes of a tap after staging, which copies packed words into the frame. The ISA of these tests stages each word
// as the word and its complement, which takes twice the bytes.
size_t ComplementedBytes(int32_t tap_words) { return 2 * sizeof(uint32_t) * static_cast<size_t>(tap_words); }
void StageWithComplement(const uint32_t* words, int64_t taps, int32_t tap_words, uint8_t* staged) {
  const int64_t count = taps * tap_words;
  auto* out = reinterpret_cast<uint32_t*>(staged);
  for (int64_t i = 0; i < count; ++i) {
    *out++ = words[i];
    *out++ = ~words[i];
  }
}

Isa StagingIsa() {
  Isa isa = kPortableIsa;
  isa.staged_bytes = ComplementedBytes;
  isa.stage = StageWithComplement;
  return isa;
}

TEST(Flatten, MakesOneRowOfWindowsThatArePixels) {
  const Bconv2dGeometry geometry = {2, 3, 4, 3, 4, 0, 0};
  const Bconv2dGeometry flat = Flatten(Spec(1), geometry);
  EXPECT_EQ(flat.batch, 1);
  EXPECT_EQ(flat.input_height, 1);
  EXPECT_EQ(flat.output_height, 1);
  EXPECT_EQ(flat.input_width, 24);
  EXPECT_EQ(flat.output_width, 24);
  EXPECT_EQ(Flatten(Spec(3), geometry).batch, 2);
  Bconv2dSpec strided = Spec(1);
  strided.stride_width = 2;
  EXPECT_EQ(Flatten(strided, {1, 3, 4, 3, 2, 0, 0}).input_height, 3);
}

TEST(Frame, IsInPlaceWithoutPadding) {
  Frame frame;
  ASSERT_TRUE(frame.Resize(kPortableIsa, Spec(3), {1, 5, 6, 3, 4, 0, 0}, 3));
  EXPECT_FALSE(frame.has_padding);
  EXPECT_TRUE(frame.in_place);
  EXPECT_EQ(frame.FrameBytes(), 0u);
  for (int run = 0; run < 3; ++run) EXPECT_EQ(frame.run_offsets.data()[run], run * 6 * 4);
}

TEST(Frame, IsStagedWhereAnIsaReadsWordsTwice) {
  Isa isa = StagingIsa();
  Frame frame;
  for (const bool stages_pixels : {false, true}) {
    isa.stages_pixels = stages_pixels;
    ASSERT_TRUE(frame.Resize(isa, Spec(3), {1, 5, 6, 3, 4, 0, 0}, 3));
    EXPECT_FALSE(frame.in_place);
    ASSERT_TRUE(frame.Resize(isa, Spec(1), {1, 1, 6, 1, 6, 0, 0}, 1));
    EXPECT_EQ(frame.in_place, stages_pixels);
  }
}

TEST(Frame, HasPaddingOnAllSides) {
  const std::vector<uint32_t> image = {1, 2, 3, 4, 5, 6};
  Frame frame;
  ASSERT_TRUE(frame.Resize(kPortableIsa, Spec(3), {1, 2, 3, 2, 3, 1, 1}, 3));
  EXPECT_TRUE(frame.has_padding);
  ASSERT_EQ(frame.height, 4);
  ASSERT_EQ(frame.RowBytes(), 20u);
  std::vector<uint32_t> staged(frame.FrameBytes() / sizeof(uint32_t), ~0u);
  auto* bytes = reinterpret_cast<uint8_t*>(staged.data());
  frame.StageRows(image.data(), 0, 1, bytes);
  frame.StageRows(image.data(), 1, 4, bytes);
  staged.resize(20);
  EXPECT_EQ(staged, (std::vector<uint32_t>{0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 4, 5, 6, 0, 0, 0, 0, 0, 0}));
}

TEST(Frame, StagesThePixelsOfEveryGroup) {
  const std::vector<uint32_t> image = {1, 2, 3, 4, 5, 6, 7, 8};
  Bconv2dSpec spec = Spec(2);
  spec.channels_in = 128;
  spec.groups = 2;
  const Isa isa = StagingIsa();
  Frame frame;
  ASSERT_TRUE(frame.Resize(isa, spec, {1, 1, 2, 1, 2, 0, 1}, 4));
  ASSERT_EQ(frame.width, 3);
  std::vector<uint32_t> staged(frame.RowBytes() / sizeof(uint32_t), 77);
  frame.StageRows(image.data(), 0, 1, reinterpret_cast<uint8_t*>(staged.data()));
  std::vector<uint32_t> expected(8, 0);
  for (uint32_t word : image) expected.insert(expected.end(), {word, ~word});
  EXPECT_EQ(staged, expected);
}

TEST(Frame, RefusesWhatNoModelNeeds) {
  // An image of 2^14 rows of 2^14 one-word pixels reaches the frame's size limit of 2^30 bytes.
  Bconv2dSpec spec = Spec(2);
  Frame frame;
  spec.dilation_height_factor = spec.dilation_width_factor = (1 << 14) - 1;
  EXPECT_TRUE(frame.Resize(kPortableIsa, spec, {1, 1, 1, 1, 1, 0, 0}, 4));
  spec.dilation_width_factor = 1 << 14;
  EXPECT_FALSE(frame.Resize(kPortableIsa, spec, {1, 1, 1, 1, 1, 0, 0}, 4));
  spec.dilation_height_factor = spec.dilation_width_factor = std::numeric_limits<int32_t>::max();
  EXPECT_FALSE(frame.Resize(kPortableIsa, spec, {1, 1, 1, 1, 1, 0, 0}, 4));
}

TEST(Frame, LeavesOutWhatNoWindowReaches) {
  const std::vector<uint32_t> image = {1, 2, 3, 4, 5, 6, 7, 8};
  Bconv2dSpec spec = Spec(1);
  spec.stride_height = spec.stride_width = 2;
  Frame frame;
  ASSERT_TRUE(frame.Resize(kPortableIsa, spec, {1, 2, 4, 1, 2, 0, 1}, 1));
  ASSERT_EQ(frame.height, 1);
  ASSERT_EQ(frame.width, 3);
  std::vector<uint32_t> staged(frame.FrameBytes() / sizeof(uint32_t), ~0u);
  frame.StageRows(image.data(), 0, 1, reinterpret_cast<uint8_t*>(staged.data()));
  staged.resize(3);
  EXPECT_EQ(staged, (std::vector<uint32_t>{0, 1, 2}));
}

TEST(Frame, StagesAsTheIsaWants) {
  const Isa isa = StagingIsa();
  const std::vector<uint32_t> image = {7, 8};
  Frame frame;
  ASSERT_TRUE(frame.Resize(isa, Spec(3), {1, 1, 2, 1, 2, 1, 1}, 3));
  std::vector<uint32_t> staged(frame.FrameBytes() / sizeof(uint32_t), ~0u);
  frame.StageRows(image.data(), 1, 2, reinterpret_cast<uint8_t*>(staged.data()));
  const std::vector<uint32_t> row(staged.begin() + 8, staged.begin() + 16);
  EXPECT_EQ(row, (std::vector<uint32_t>{0, 0, 7, ~7u, 8, ~8u, 0, 0}));
}

// The last pixels of the input are in no window, because a stride is three pixels. The frame holds only the pixels that
// windows read.
TEST(Frame, CutsWhatNoWindowReads) {
  Bconv2dSpec spec = Spec(2);
  spec.stride_width = 3;
  const std::vector<uint32_t> image = {1, 2, 3, 4, 5, 6, 7, 8};
  Frame frame;
  ASSERT_TRUE(frame.Resize(kPortableIsa, spec, {1, 1, 8, 1, 2, 0, 0}, 2));
  ASSERT_EQ(frame.RowBytes(), 20u);
  std::vector<uint32_t> staged(frame.FrameBytes() / sizeof(uint32_t), ~0u);
  frame.StageRows(image.data(), 0, 2, reinterpret_cast<uint8_t*>(staged.data()));
  staged.resize(10);
  EXPECT_EQ(staged, (std::vector<uint32_t>{1, 2, 3, 4, 5, 0, 0, 0, 0, 0}));
}

TEST(Frame, RefusesManyGigabytes) {
  Bconv2dSpec spec = Spec(3);
  spec.dilation_height_factor = spec.dilation_width_factor = 1 << 30;
  Frame frame;
  EXPECT_FALSE(frame.Resize(kPortableIsa, spec, {1, 5, 5, 5, 5, 1, 1}, 9));
}

}  // namespace
}  // namespace litebnn
