#include "kernels/bconv2d/padding_corrections.h"

#include <algorithm>

namespace litebnn {
namespace {

// The largest number of padding corrections that are stored, and the largest output height and width. Sensible models
// stay far below this limit, but a malicious geometry would exceed it.
constexpr int64_t kMaxCorrections = int64_t{1} << 24;

// The output positions of one dimension, grouped into classes. The windows at all positions of a class have the same
// taps inside the input.
struct TapClasses {
  AlignedBuffer<TapRange> ranges;  // [count]
  int32_t count = 0;

  // Groups the output positions of `dimension` into classes, and stores each position's class in `class_of`. The
  // windows at all positions of a class have the same taps inside the input. Returns false if memory ran out.
  bool Build(const Dimension& dimension, AlignedBuffer<int32_t>* class_of) {
    const auto positions = static_cast<size_t>(dimension.output);
    if (!class_of->Allocate(positions) || !ranges.Allocate(positions)) return false;
    for (int32_t position = 0; position < dimension.output; ++position) {
      const TapRange range = InsideTaps(dimension, position);
      // From one output position to the next, the range of taps inside the input only moves down. Positions with equal
      // ranges are therefore adjacent.
      if (count == 0 || !(ranges.data()[count - 1] == range)) ranges.data()[count++] = range;
      class_of->data()[position] = count - 1;
    }
    return true;
  }
};

// Multiplies the sum of the corrections of the taps [0, rows) x [0, columns) by `sign`, and adds it to `corrections`,
// for each channel.
void AddTaps(const PackedFilter& filter, int32_t filter_width, int32_t rows, int32_t columns, int32_t sign,
             int32_t* corrections) {
  if (rows == 0 || columns == 0) return;
  const int64_t last_tap = int64_t{rows - 1} * filter_width + columns - 1;
  const int32_t* sums = filter.tap_sums.data() + last_tap * filter.parameters;
  for (int32_t slot = 0; slot < filter.parameters; ++slot) corrections[slot] += sign * sums[slot];
}

// Converts the class numbers of output positions to offsets of the classes' corrections. `factor` is the distance from
// the corrections of one class to those of the next.
void Scale(AlignedBuffer<int32_t>& values, int32_t count, int32_t factor) {
  for (int32_t i = 0; i < count; ++i) values.data()[i] *= factor;
}

}  // namespace

TapRange InsideTaps(const Dimension& d, int32_t position) {
  const int64_t first = int64_t{position} * d.stride - d.pad;
  const int64_t begin = (std::max<int64_t>(-first, 0) + d.dilation - 1) / d.dilation;
  const int64_t end = (std::max<int64_t>(d.input - first, 0) + d.dilation - 1) / d.dilation;
  const auto clipped_begin = static_cast<int32_t>(std::min<int64_t>(begin, d.filter));
  const auto clipped_end = static_cast<int32_t>(std::min<int64_t>(end, d.filter));
  return {clipped_begin, std::max(clipped_begin, clipped_end)};
}

bool PaddingCorrections::Build(const Bconv2dSpec& spec, const Bconv2dGeometry& geometry, const PackedFilter& filter) {
  if (std::max(geometry.output_height, geometry.output_width) > kMaxCorrections) return false;
  TapClasses rows, columns;
  if (!rows.Build({geometry.output_height, spec.stride_height, spec.dilation_height_factor, geometry.pad_top,
                   spec.filter_height, geometry.input_height},
                  &row_offsets) ||
      !columns.Build({geometry.output_width, spec.stride_width, spec.dilation_width_factor, geometry.pad_left,
                      spec.filter_width, geometry.input_width},
                     &column_offsets)) {
    return false;
  }
  const int64_t classes = int64_t{rows.count} * columns.count;
  if (classes > kMaxCorrections / filter.parameters ||
      !values.Allocate(static_cast<size_t>(classes * filter.parameters))) {
    return false;
  }
  Scale(row_offsets, geometry.output_height, columns.count * filter.parameters);
  Scale(column_offsets, geometry.output_width, filter.parameters);
  for (int32_t i = 0; i < classes; ++i) {
    const TapRange y = rows.ranges.data()[i / columns.count], x = columns.ranges.data()[i % columns.count];
    int32_t* corrections = values.data() + int64_t{i} * filter.parameters;
    const auto add = [&](int32_t to_row, int32_t to_column, int32_t sign) {
      AddTaps(filter, spec.filter_width, to_row, to_column, sign, corrections);
    };
    // The sum over the padded taps is computed as the sum over all taps minus the sum over the taps inside the input.
    // In this order each partial sum is over distinct taps, so it fits an int32_t.
    add(spec.filter_height, spec.filter_width, 1);
    add(y.end, x.end, -1);
    add(y.begin, x.end, 1);
    add(y.begin, x.begin, -1);
    add(y.end, x.begin, 1);
  }
  return true;
}

}  // namespace litebnn
