// Splits an image's output among threads, by pixels or by tiles of channels.
#pragma once

#include <cstdint>

#include "kernels/bconv2d/packed_filter.h"

namespace litebnn {

// The output that one call of Isa::bconv computes.
struct Chunk {
  int32_t group;
  int64_t pixel_begin, pixel_end;
  int32_t channel_begin, channel_end;  // within the group
};

class Schedule {
 public:
  Schedule(const Isa& isa, const Bconv2dSpec& spec, const PackedFilter& filter, const Bconv2dGeometry& geometry,
           int num_threads);

  // Threads share the units [0, count()), which are pixels or tiles of channels. They take units in multiples of
  // grain().
  int64_t count() const { return by_channels_ ? int64_t{tiles_in_group_} * groups_ : pixels_; }
  int64_t grain() const { return grain_; }

  // Calls visit(chunk) for each chunk of the output that belongs to the units [begin, end), which are pixels or tiles
  // of channels. A chunk has channels of only one group.
  template <typename Visit>
  void ForEachChunk(int64_t begin, int64_t end, Visit visit) const {
    if (!by_channels_) {
      for (int32_t group = 0; group < groups_; ++group) visit(Chunk{group, begin, end, 0, group_channels_});
      return;
    }
    for (int64_t tile = begin, next; tile < end; tile = next) {
      const int64_t group = tile / tiles_in_group_, first = group * tiles_in_group_;
      next = first + tiles_in_group_ < end ? first + tiles_in_group_ : end;
      visit(Chunk{static_cast<int32_t>(group), 0, pixels_, ChannelOf(tile - first), ChannelOf(next - first)});
    }
  }

 private:
  int32_t ChannelOf(int64_t tile) const {
    const int64_t channel = tile * tile_channels_;
    return channel < group_channels_ ? static_cast<int32_t>(channel) : group_channels_;
  }

  int64_t pixels_, grain_;
  int32_t groups_, group_channels_, tiles_in_group_, tile_channels_;
  bool by_channels_;
};

}  // namespace litebnn
