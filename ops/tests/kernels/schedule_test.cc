#include "kernels/bconv2d/schedule.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace litebnn {
namespace {

Bconv2dGeometry Image(int32_t height, int32_t width) {
  Bconv2dGeometry geometry = {};
  geometry.output_height = height;
  geometry.output_width = width;
  return geometry;
}

struct Layer {
  Bconv2dSpec spec = {};
  PackedFilter filter;

  Layer(int32_t groups, int32_t group_channels) {
    spec.groups = groups;
    filter.group_channels = group_channels;
    const int32_t tile = kPortableIsa.tile_channels;
    filter.padded_channels = (group_channels + tile - 1) / tile * tile;
  }
  Schedule For(int32_t pixels, int threads) const { return {kPortableIsa, spec, filter, Image(1, pixels), threads}; }
};

TEST(Schedule, OneThreadHasAllPixels) { EXPECT_EQ(Layer(1, 64).For(49, 1).count(), 49); }

TEST(Schedule, ChannelsAreSharedWherePixelsDoNotSplit) {
  const Schedule schedule = Layer(1, 128).For(1, 4);
  EXPECT_EQ(schedule.count(), 4);
  EXPECT_EQ(schedule.grain(), 1);
  // Each of two threads gets a chunk with two of the four channel tiles, so it reads the whole input only once.
  EXPECT_EQ(Layer(1, 128).For(1, 2).grain(), 2);
  EXPECT_EQ(Layer(1, 128).For(400, 4).count(), 400);
}

TEST(Schedule, GroupsThatShareAWordOfOutputStayTogether) {
  for (const int32_t groups : {1, 2}) {
    for (const int32_t channels : {64, 72}) {
      Layer c(groups, channels);
      c.spec.output_type = Bconv2dOutputType::kBitpacked;
      EXPECT_EQ(c.For(1, 2).count() > 1, groups == 1 || channels == 64) << groups << " groups of " << channels;
      c.spec.output_type = Bconv2dOutputType::kFloat32;
      EXPECT_GT(c.For(1, 2).count(), 1);
    }
  }
}

TEST(Schedule, PixelsSplitByTilesOnly) {
  Isa isa = kPortableIsa;
  isa.tile_pixels = 8;
  const Layer c(1, 128);
  // The image has 16 pixels, which are only two tiles of 8 pixels. For four threads, the channels must be split too.
  EXPECT_EQ(Schedule(isa, c.spec, c.filter, Image(1, 16), 4).count(), 4);
  EXPECT_EQ(Schedule(isa, c.spec, c.filter, Image(1, 32), 4).count(), 32);
  EXPECT_EQ(Schedule(isa, c.spec, c.filter, Image(1, 32), 4).grain(), 8);
}

TEST(Schedule, RowsStayTogether) {
  Isa isa = kPortableIsa;
  isa.tile_pixels = 4;
  const Layer c(1, 128);
  // Each of two threads gets two chunks of whole rows, so a chunk has 14 of the large image's 56 rows. A quarter of the
  // small image is 3.5 rows. The small image's chunks have 4 rows, because only an even number of rows of 14 pixels
  // consists of whole tiles of 4 pixels.
  EXPECT_EQ(Schedule(isa, c.spec, c.filter, Image(56, 56), 2).grain(), 14 * 56);
  EXPECT_EQ(Schedule(isa, c.spec, c.filter, Image(14, 14), 2).grain(), 4 * 14);
}

TEST(Schedule, GroupsThatShareAWordOfOutputAreOneThreads) {
  Layer c(2, 40);
  EXPECT_EQ(c.For(1, 4).count(), 4);
  c.spec.output_type = Bconv2dOutputType::kBitpacked;
  EXPECT_EQ(c.For(1, 4).count(), 1);
  Layer whole(2, 64);
  whole.spec.output_type = Bconv2dOutputType::kBitpacked;
  EXPECT_EQ(whole.For(1, 4).count(), 4);
}

// In every split of a convolution into chunks, each channel of each pixel is in exactly one chunk.
TEST(Schedule, PartsCoverEverythingOnce) {
  for (int32_t groups : {1, 3}) {
    for (int32_t channels : {7, 64, 100}) {
      for (int32_t pixels : {1, 5, 50}) {
        const Schedule schedule = Layer(groups, channels).For(pixels, 4);
        for (int64_t step : {1, 2, 3, 1000}) {
          std::set<std::tuple<int32_t, int64_t, int32_t>> seen;
          for (int64_t begin = 0; begin < schedule.count(); begin += step) {
            schedule.ForEachChunk(begin, std::min(begin + step, schedule.count()), [&](const Chunk& chunk) {
              EXPECT_EQ(chunk.channel_begin % kPortableIsa.tile_channels, 0);
              for (int64_t pixel = chunk.pixel_begin; pixel < chunk.pixel_end; ++pixel) {
                for (int32_t channel = chunk.channel_begin; channel < chunk.channel_end; ++channel) {
                  EXPECT_TRUE(seen.emplace(chunk.group, pixel, channel).second);
                }
              }
            });
          }
          EXPECT_EQ(static_cast<int64_t>(seen.size()), groups * channels * pixels);
        }
      }
    }
  }
}

}  // namespace
}  // namespace litebnn
