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
  bool Contains(int32_t tap) const { return tap >= begin && tap < end; }
};

// One dimension of a convolution.
struct Dimension {
  int32_t output, stride, dilation, pad, filter, input;
};

// The taps that fall inside the input for one output position.
TapRange InsideTaps(const Dimension& dimension, int32_t position);

class PaddingCorrections {
 public:
  // False where memory ran out, or would for a hostile geometry.
  bool Build(const Bconv2dSpec& spec, const Bconv2dGeometry& geometry, const PackedFilter& filter);

  size_t bytes() const { return values_.bytes() + row_offsets_.bytes() + column_offsets_.bytes(); }
  // What output pixel (y, x) adds to K - 2 * popcount sum is at values()[row_offsets()[y] + column_offsets()[x] +
  // slot], with the slots of PackedFilter's parameters.
  const int32_t* values() const { return values_.data(); }
  const int32_t* row_offsets() const { return row_offsets_.data(); }
  const int32_t* column_offsets() const { return column_offsets_.data(); }

 private:
  AlignedBuffer<int32_t> values_;  // [row classes, column classes, groups, padded_channels]
  AlignedBuffer<int32_t> row_offsets_, column_offsets_;
};

}  // namespace litebnn
