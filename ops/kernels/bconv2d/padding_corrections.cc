#include "kernels/bconv2d/padding_corrections.h"

#include <algorithm>

namespace litebnn {
namespace {

// More than any sensible model needs; a hostile geometry asks for more.
constexpr int64_t kMaxCorrections = int64_t{1} << 28;

// Classes of a dimension's output positions by the taps they have.
struct TapClasses {
  AlignedBuffer<TapRange> ranges;  // [count]
  int32_t count = 0;

  // Also sets class_of[positions].
  bool Build(const Dimension& dimension, AlignedBuffer<int32_t>* class_of) {
    const auto positions = static_cast<size_t>(dimension.output);
    if (!class_of->Allocate(positions) || !ranges.Allocate(positions)) return false;
    for (int32_t position = 0; position < dimension.output; ++position) {
      const TapRange range = InsideTaps(dimension, position);
      // Classes come in runs, but a middle position may also return to an earlier one.
      int32_t known = count - 1;
      while (known >= 0 && !(ranges.data()[known] == range)) --known;
      if (known < 0) {
        known = count;
        ranges.data()[count++] = range;
      }
      class_of->data()[position] = known;
    }
    return true;
  }
};

// Makes offsets of numbers of classes.
void Scale(AlignedBuffer<int32_t>& values, int32_t count, int32_t factor) {
  for (int32_t i = 0; i < count; ++i) values.data()[i] *= factor;
}

}  // namespace

TapRange InsideTaps(const Dimension& d, int32_t position) {
  const int64_t first = int64_t{position} * d.stride - d.pad;
  const int64_t begin = first >= 0 ? 0 : (-first + d.dilation - 1) / d.dilation;
  const int64_t end = first >= d.input ? 0 : (d.input - first + d.dilation - 1) / d.dilation;
  const auto clipped_begin = static_cast<int32_t>(std::min<int64_t>(begin, d.filter));
  const auto clipped_end = static_cast<int32_t>(std::min<int64_t>(end, d.filter));
  return {clipped_begin, std::max(clipped_begin, clipped_end)};
}

bool PaddingCorrections::Build(const Bconv2dSpec& spec, const Bconv2dGeometry& geometry, const PackedFilter& filter) {
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
  // A tap in the padding adds its filter's popcount, where it should add half its channels.
  const int32_t channels = spec.channels_in / spec.groups;
  for (int32_t i = 0; i < classes; ++i) {
    const TapRange y = rows.ranges.data()[i / columns.count], x = columns.ranges.data()[i % columns.count];
    int32_t* corrections = values.data() + int64_t{i} * filter.parameters;
    for (int32_t tap = 0; tap < filter.taps; ++tap) {
      if (y.Contains(tap / spec.filter_width) && x.Contains(tap % spec.filter_width)) continue;
      const int32_t* popcounts = filter.tap_popcounts.data() + int64_t{tap} * filter.parameters;
      for (int32_t slot = 0; slot < filter.parameters; ++slot) corrections[slot] += 2 * popcounts[slot] - channels;
    }
  }
  return true;
}

}  // namespace litebnn
