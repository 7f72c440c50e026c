#include "kernels/bconv2d/packed_filter.h"

#include <gtest/gtest.h>

#include <vector>

namespace litebnn {
namespace {

Bconv2dSpec Spec(int32_t channels_in, int32_t channels_out, int32_t groups) {
  Bconv2dSpec spec = {};
  spec.channels_in = channels_in;
  spec.channels_out = channels_out;
  spec.groups = groups;
  spec.filter_height = 3;
  spec.filter_width = 2;
  spec.stride_height = spec.stride_width = spec.dilation_height_factor = spec.dilation_width_factor = 1;
  return spec;
}

std::vector<uint32_t> Filter(size_t words) { return std::vector<uint32_t>(words, 0x80000001u); }

TEST(PackedFilter, RowsAreRunsWhereTapsLieSideBySide) {
  Bconv2dSpec spec = Spec(40, 5, 1);
  PackedFilter filter;
  ASSERT_TRUE(filter.Pack(kPortableIsa, spec, Filter(5 * 6 * 2).data()));
  EXPECT_EQ(filter.taps, 6);
  EXPECT_EQ(filter.tap_words, 2);
  EXPECT_EQ(filter.runs, 3);
  EXPECT_EQ(filter.run_words, 4);
  EXPECT_EQ(filter.words, 12);
  EXPECT_EQ(filter.depth, 240);

  spec.dilation_width_factor = 2;
  ASSERT_TRUE(filter.Pack(kPortableIsa, spec, Filter(5 * 6 * 2).data()));
  EXPECT_EQ(filter.runs, 6);
  EXPECT_EQ(filter.run_words, 2);
}

TEST(PackedFilter, ChannelsArePaddedToTilesInEachGroup) {
  const Bconv2dSpec spec = Spec(64, 80, 2);
  PackedFilter filter;
  ASSERT_TRUE(filter.Pack(kPortableIsa, spec, Filter(80 * 6).data()));
  EXPECT_EQ(filter.group_channels, 40);
  EXPECT_EQ(filter.padded_channels, 64);
  EXPECT_EQ(filter.parameters, 128);
  EXPECT_EQ(filter.group_weights_bytes % kAlignment, 0u);
  EXPECT_EQ(filter.GroupWeights(1), filter.weights.data() + filter.group_weights_bytes);
  // In the portable ISA, 64 channels are whole tiles, so the packed filter has no padding.
  ASSERT_TRUE(filter.Pack(kPortableIsa, Spec(64, 64, 2), Filter(64 * 6).data()));
  EXPECT_EQ(filter.padded_channels, 32);
}

TEST(PackedFilter, ScalesAreThoseOfTheOutputType) {
  Bconv2dSpec spec = Spec(64, 4, 2);
  const float multiplier[] = {1.0f, 2.0f, 3.0f, 4.0f}, bias[] = {5.0f, 6.0f, 7.0f, 8.0f};
  spec.post_activation_multiplier = multiplier;
  spec.post_activation_bias = bias;
  spec.output_scale = 0.5f;
  for (const Bconv2dOutputType type : {Bconv2dOutputType::kFloat32, Bconv2dOutputType::kInt8}) {
    spec.output_type = type;
    PackedFilter filter;
    ASSERT_TRUE(filter.Pack(kPortableIsa, spec, Filter(4 * 6).data()));
    const float scale = type == Bconv2dOutputType::kInt8 ? 0.5f : 1.0f;
    for (int32_t channel = 0; channel < 4; ++channel) {
      const int32_t slot = channel / 2 * filter.padded_channels + channel % 2;
      EXPECT_EQ(filter.multiplier.data()[slot], multiplier[channel] / scale);
      EXPECT_EQ(filter.bias.data()[slot], bias[channel] / scale);
    }
  }
}

TEST(PackedFilter, WithoutScalesValuesStayAsTheyAre) {
  PackedFilter filter;
  ASSERT_TRUE(filter.Pack(kPortableIsa, Spec(32, 1, 1), Filter(6).data()));
  EXPECT_EQ(filter.multiplier.data()[0], 1.0f);
  EXPECT_EQ(filter.bias.data()[0], 0.0f);
}

TEST(PackedFilter, TapsAreSummedForZeroPadding) {
  Bconv2dSpec spec = Spec(64, 3, 1);
  std::vector<uint32_t> words(3 * 6 * 2);
  for (size_t i = 0; i < words.size(); ++i) words[i] = (1u << (i % 20)) - 1u;
  PackedFilter filter;
  ASSERT_TRUE(filter.Pack(kPortableIsa, spec, words.data()));
  EXPECT_EQ(filter.tap_sums.data(), nullptr);
  spec.zero_padding = true;
  ASSERT_TRUE(filter.Pack(kPortableIsa, spec, words.data()));
  const auto width = static_cast<size_t>(spec.filter_width);
  for (size_t channel = 0; channel < 3; ++channel) {
    for (size_t last = 0; last < 6; ++last) {
      int32_t expected = 0;
      for (size_t tap = 0; tap < 6; ++tap) {
        if (tap / width > last / width || tap % width > last % width) continue;
        const size_t first = channel * 12 + tap * 2;
        expected += 2 * static_cast<int32_t>(first % 20 + (first + 1) % 20) - 64;
      }
      EXPECT_EQ(filter.tap_sums.data()[last * static_cast<size_t>(filter.parameters) + channel], expected);
    }
  }
}

}  // namespace
}  // namespace litebnn
