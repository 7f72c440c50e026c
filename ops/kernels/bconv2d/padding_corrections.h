// Same-zero padding. ISAs see a tap in the padding as +1; what their sums are off by depends only on which taps are
// outside of the input, so that there is one row of corrections for each such class of output pixels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/bconv2d/packed_filter.h"

namespace litebnn {

// Taps [begin, end) of one filter dimension.
struct TapRange {
  int32_t begin, end;
  bool operator==(const TapRange& other) const { return begin == other.begin && end == other.end; }
};

// One dimension of a convolution.
struct Dimension {
  int32_t output, stride, dilation, pad, filter, input;
};

// The taps that fall inside the input for one output position.
TapRange InsideTaps(const Dimension& dimension, int32_t position);

// What output pixel (y, x) adds to K - 2 * popcount sum is at values[row_offsets[y] + column_offsets[x] + slot], with
// the slots of PackedFilter's parameters.
struct PaddingCorrections {
  // False where memory ran out, or would for a hostile geometry.
  bool Build(const Bconv2dSpec& spec, const Bconv2dGeometry& geometry, const PackedFilter& filter);
  size_t bytes() const { return values.bytes() + row_offsets.bytes() + column_offsets.bytes(); }

  AlignedBuffer<int32_t> values;  // [row classes, column classes, groups, padded_channels]
  AlignedBuffer<int32_t> row_offsets, column_offsets;
};

}  // namespace litebnn
