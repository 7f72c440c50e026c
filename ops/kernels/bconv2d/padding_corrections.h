// Same-zero padding. The kernels compute padded taps as +1, so their sums need a correction per output channel. It
// depends only on which taps are padded, so all output pixels of one such class share a row of corrections.
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

// The taps that lie inside the input at one output position.
TapRange InsideTaps(const Dimension& dimension, int32_t position);

// The correction of output pixel (y, x), to be added to depth - 2 * popcount, is values[row_offsets[y] +
// column_offsets[x] + slot]. Slots are those of PackedFilter's parameters.
struct PaddingCorrections {
  // False if memory ran out, or if a hostile geometry asks for too much.
  bool Build(const Bconv2dSpec& spec, const Bconv2dGeometry& geometry, const PackedFilter& filter);
  size_t bytes() const { return values.bytes() + row_offsets.bytes() + column_offsets.bytes(); }

  AlignedBuffer<int32_t> values;  // [row classes, column classes, groups, padded_channels]
  AlignedBuffer<int32_t> row_offsets, column_offsets;
};

}  // namespace litebnn
