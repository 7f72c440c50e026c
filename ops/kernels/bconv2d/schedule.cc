#include "kernels/bconv2d/schedule.h"

#include <numeric>

namespace litebnn {
namespace {

// The number of chunks per thread into which the output of a convolution is split. Few large chunks are better, because
// adjacent windows of one chunk share computations.
constexpr int64_t kChunksOfThread = 2;

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The minimum number of output pixels in a chunk. A chunk consists of whole rows and whole tiles.
int64_t PixelGrain(const Isa& isa, const Bconv2dGeometry& geometry, int num_threads) {
  const int64_t pixels = int64_t{geometry.output_height} * geometry.output_width;
  const int64_t rows =
      geometry.output_height == 1 ? isa.tile_pixels : std::lcm<int64_t>(isa.tile_pixels, geometry.output_width);
  return CeilDivide(CeilDivide(pixels, kChunksOfThread * num_threads), rows) * rows;
}

// The share of the work that the busiest thread does.
double LongestShare(int64_t count, int64_t grain, int num_threads) {
  return static_cast<double>(CeilDivide(CeilDivide(count, grain), num_threads) * grain) / static_cast<double>(count);
}

}  // namespace

Schedule::Schedule(const Isa& isa, const Bconv2dSpec& spec, const PackedFilter& filter, const Bconv2dGeometry& geometry,
                   int num_threads)
    : pixels_(int64_t{geometry.output_height} * geometry.output_width),
      grain_(PixelGrain(isa, geometry, num_threads)),
      groups_(spec.groups),
      group_channels_(filter.group_channels),
      tiles_in_group_(filter.padded_channels / isa.tile_channels),
      tile_channels_(isa.tile_channels) {
  // Two groups of output channels may share a word of packed output, and only one thread may write a word.
  const bool words_are_shared =
      spec.output_type == Bconv2dOutputType::kBitpacked && groups_ > 1 && group_channels_ % kBitsPerWord != 0;
  // If threads share channels, each chunk reads the whole input. Channels are therefore split only if the work is then
  // clearly better balanced between the threads. In this case each thread gets one chunk.
  const int64_t tiles = int64_t{tiles_in_group_} * groups_;
  by_channels_ = !words_are_shared &&
                 LongestShare(tiles, 1, num_threads) < 0.9 * LongestShare(pixels_, isa.tile_pixels, num_threads);
  if (by_channels_) grain_ = CeilDivide(tiles, num_threads);
}

}  // namespace litebnn
