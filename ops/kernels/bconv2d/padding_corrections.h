// Corrections for same-zero padding. The kernels compute padded taps as +1, so each sum needs a correction, which
// depends on the channel and on the taps that are padded. Output pixels with the same padded taps form a class and
// share one row of corrections.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/bconv2d/packed_filter.h"

namespace litebnn {

// The taps from `begin` to before `end`, along one dimension of the filter.
struct TapRange {
  int32_t begin, end;
  bool operator==(const TapRange& other) const { return begin == other.begin && end == other.end; }
};

// The sizes of a convolution along one dimension, height or width.
struct Dimension {
  int32_t output, stride, dilation, pad, filter, input;
};

// Returns the taps of the window at output `position` that lie inside the input.
TapRange InsideTaps(const Dimension& dimension, int32_t position);

// The correction of output pixel (y, x) is values[row_offsets[y] + column_offsets[x] + slot], which is added to the dot
// product (depth - 2 * popcount). The slot of a channel is group * padded_channels + its number in the group.
struct PaddingCorrections {
  // Computes the corrections. Returns false if memory ran out, or if a malicious geometry needs too many corrections.
  bool Build(const Bconv2dSpec& spec, const Bconv2dGeometry& geometry, const PackedFilter& filter);
  size_t bytes() const { return values.bytes() + row_offsets.bytes() + column_offsets.bytes(); }

  AlignedBuffer<int32_t> values;  // [row classes, column classes, groups, padded_channels]
  AlignedBuffer<int32_t> row_offsets, column_offsets;
};

}  // namespace litebnn
