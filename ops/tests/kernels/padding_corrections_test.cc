#include "kernels/bconv2d/padding_corrections.h"

#include <gtest/gtest.h>

#include <vector>

namespace litebnn {
namespace {

TEST(InsideTaps, AreThoseOverTheInput) {
  // This dimension has a filter of width 3 and a padding of one pixel on each side.
  const Dimension plain = {5, 1, 1, 1, 3, 5};
  EXPECT_EQ(InsideTaps(plain, 0), (TapRange{1, 3}));
  EXPECT_EQ(InsideTaps(plain, 2), (TapRange{0, 3}));
  EXPECT_EQ(InsideTaps(plain, 4), (TapRange{0, 2}));
  // At a dilation of 3, the first window's taps are at pixels -2, 1 and 4, the second window's taps at 1, 4 and 7.
  const Dimension dilated = {2, 3, 3, 2, 3, 5};
  EXPECT_EQ(InsideTaps(dilated, 0), (TapRange{1, 3}));
  EXPECT_EQ(InsideTaps(dilated, 1), (TapRange{0, 2}));
}

TEST(InsideTaps, MayBeNone) {
  const Dimension before = {1, 1, 1, 9, 3, 5}, after = {9, 1 << 30, 1, 0, 3, 5};
  const TapRange none = InsideTaps(before, 0), far = InsideTaps(after, 8);
  EXPECT_EQ(none.begin, none.end);
  EXPECT_EQ(far.begin, far.end);
}

struct Case {
  Bconv2dSpec spec = {};
  Bconv2dGeometry geometry = {1, 4, 5, 4, 5, 1, 1};
  std::vector<uint32_t> words;
  PackedFilter filter;

  Case() {
    spec.channels_in = 64;
    spec.channels_out = 2;
    spec.groups = 2;
    spec.filter_height = spec.filter_width = 3;
    spec.stride_height = spec.stride_width = spec.dilation_height_factor = spec.dilation_width_factor = 1;
    spec.zero_padding = true;
    for (uint32_t i = 0; i < 2 * 9; ++i) words.push_back(0x01234567u * i);
    EXPECT_TRUE(filter.Pack(kPortableIsa, spec, words.data()));
  }
};

TEST(PaddingCorrections, TakeBackWhatPaddedTapsAdd) {
  Case c;
  PaddingCorrections corrections;
  ASSERT_TRUE(corrections.Build(c.spec, c.geometry, c.filter));
  for (int32_t y = 0; y < 4; ++y) {
    for (int32_t x = 0; x < 5; ++x) {
      const int32_t* values =
          corrections.values.data() + corrections.row_offsets.data()[y] + corrections.column_offsets.data()[x];
      for (int32_t group = 0; group < 2; ++group) {
        int32_t expected = 0;
        for (int32_t tap = 0; tap < 9; ++tap) {
          const int32_t input_y = y + tap / 3 - 1, input_x = x + tap % 3 - 1;
          if (input_y >= 0 && input_y < 4 && input_x >= 0 && input_x < 5) continue;
          expected += 2 * __builtin_popcount(c.words[static_cast<size_t>(group * 9 + tap)]) - 32;
        }
        EXPECT_EQ(values[group * c.filter.padded_channels], expected) << y << ", " << x << ", group " << group;
      }
    }
  }
}

TEST(PaddingCorrections, PixelsWithTheSameTapsShareThem) {
  Case c;
  PaddingCorrections corrections;
  ASSERT_TRUE(corrections.Build(c.spec, c.geometry, c.filter));
  EXPECT_EQ(corrections.row_offsets.data()[1], corrections.row_offsets.data()[2]);
  EXPECT_EQ(corrections.column_offsets.data()[1], corrections.column_offsets.data()[3]);
  EXPECT_NE(corrections.column_offsets.data()[0], corrections.column_offsets.data()[4]);
  // Windows with the same padded taps form a class. The first row, the last row and all rows between differ in their
  // padded taps, and so do columns, which makes 3 * 3 = 9 classes.
  EXPECT_EQ(corrections.values.bytes(),
            AlignUp(size_t{9} * static_cast<size_t>(c.filter.parameters) * sizeof(int32_t)));
}

TEST(PaddingCorrections, RefuseWhatNoModelNeeds) {
  Case c;
  c.filter.parameters = 1 << 28;
  PaddingCorrections corrections;
  EXPECT_FALSE(corrections.Build(c.spec, c.geometry, c.filter));
  // Without padding, all windows form one class, which has one correction for each output channel.
  c.geometry = {1, 4, 5, 4, 5, 0, 0};
  c.spec.filter_height = c.spec.filter_width = 1;
  c.filter.parameters = 1 << 24;
  ASSERT_TRUE(c.filter.tap_sums.Allocate(size_t{1} << 24));
  EXPECT_TRUE(corrections.Build(c.spec, c.geometry, c.filter));
  ++c.filter.parameters;
  EXPECT_FALSE(corrections.Build(c.spec, c.geometry, c.filter));
}

TEST(PaddingCorrections, RefuseMorePositionsThanAnyModelHas) {
  Case c;
  PaddingCorrections corrections;
  constexpr int32_t kMost = 1 << 24;
  for (const Bconv2dGeometry& wide :
       {Bconv2dGeometry{1, 1, kMost, 1, kMost + 1, 1, 1}, {1, kMost, 1, kMost + 1, 1, 1, 1}}) {
    EXPECT_FALSE(corrections.Build(c.spec, wide, c.filter));
  }
}

}  // namespace
}  // namespace litebnn
