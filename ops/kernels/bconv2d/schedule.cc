#include "kernels/bconv2d/schedule.h"

namespace litebnn {
namespace {

// The part of all work that the busiest of the threads has.
double LongestShare(int64_t count, int64_t grain, int num_threads) {
  const int64_t grains = (count + grain - 1) / grain;
  return static_cast<double>((grains + num_threads - 1) / num_threads * grain) / static_cast<double>(count);
}

}  // namespace

Schedule::Schedule(const Isa& isa, const Bconv2dSpec& spec, const PackedFilter& filter, int64_t pixels, int num_threads)
    : pixels_(pixels),
      groups_(spec.groups),
      group_channels_(filter.group_channels),
      tiles_in_group_(filter.padded_channels / isa.tile_channels),
      tile_channels_(isa.tile_channels),
      tile_pixels_(isa.tile_pixels) {
  // Groups may share a word of packed output, which one thread has to write.
  const bool words_are_shared =
      spec.output_type == Bconv2dOutputType::kBitpacked && groups_ > 1 && group_channels_ % kBitsPerWord != 0;
  // Channels only where that splits clearly more evenly, as then each thread goes through the whole input.
  by_channels_ = !words_are_shared && LongestShare(int64_t{tiles_in_group_} * groups_, 1, num_threads) <
                                          0.9 * LongestShare(pixels, tile_pixels_, num_threads);
}

}  // namespace litebnn
