#include "kernels/bconv2d/frame.h"

#include <algorithm>
#include <cstring>

namespace litebnn {
namespace {

// The upper limit for the bytes of one padded image. Sensible models stay far below it, but a malicious dilation would
// exceed it.
constexpr double kMaxFrameBytes = 1 << 30;

bool WindowsArePixels(const Bconv2dSpec& spec, const Bconv2dGeometry& geometry) {
  return spec.filter_height == 1 && spec.filter_width == 1 && spec.stride_height == 1 && spec.stride_width == 1 &&
         geometry.output_height == geometry.input_height && geometry.output_width == geometry.input_width;
}

// The number of input positions along one dimension between the first and the last position that any window reads, both
// included.
int64_t Span(int32_t output, int32_t stride, int32_t filter, int32_t dilation) {
  return int64_t{output - 1} * stride + int64_t{filter - 1} * dilation + 1;
}

}  // namespace

Bconv2dGeometry Flatten(const Bconv2dSpec& spec, const Bconv2dGeometry& geometry) {
  if (!WindowsArePixels(spec, geometry)) return geometry;
  const int32_t pixels = geometry.batch * geometry.input_height * geometry.input_width;
  return {1, 1, pixels, 1, pixels, 0, 0};
}

bool Frame::Resize(const Isa& for_isa, const Bconv2dSpec& spec, const Bconv2dGeometry& new_geometry, int32_t runs) {
  isa = &for_isa;
  geometry = new_geometry;
  pixel_words = PackedWords(spec.channels_in);
  tap_words = pixel_words / spec.groups;
  tap_bytes = isa->stage == nullptr ? sizeof(uint32_t) * static_cast<size_t>(tap_words) : isa->staged_bytes(tap_words);
  pixel_bytes = tap_bytes * static_cast<size_t>(spec.groups);
  const int64_t staged_height =
      Span(geometry.output_height, spec.stride_height, spec.filter_height, spec.dilation_height_factor);
  const int64_t staged_width =
      Span(geometry.output_width, spec.stride_width, spec.filter_width, spec.dilation_width_factor);
  has_padding = geometry.pad_top != 0 || geometry.pad_left != 0 || staged_height > geometry.input_height ||
                staged_width > geometry.input_width;
  in_place = !has_padding &&
             (isa->stage == nullptr || (isa->stages_pixels && spec.groups == 1 && WindowsArePixels(spec, geometry)));
  const auto bytes = static_cast<int64_t>(pixel_bytes);
  // The size of the frame (the padded image) is computed in floating point, because the product of integers might
  // overflow.
  const double pixels = static_cast<double>(staged_height) * static_cast<double>(staged_width);
  if (!in_place && pixels * static_cast<double>(bytes) > kMaxFrameBytes) return false;
  height = in_place ? geometry.input_height : static_cast<int32_t>(staged_height);
  width = in_place ? geometry.input_width : static_cast<int32_t>(staged_width);
  if (!run_offsets.Allocate(static_cast<size_t>(runs))) return false;
  const int32_t runs_in_row = runs / spec.filter_height;
  for (int32_t run = 0; run < runs; ++run) {
    const int64_t y = int64_t{run / runs_in_row} * spec.dilation_height_factor;
    const int64_t x = int64_t{run % runs_in_row} * spec.dilation_width_factor;
    run_offsets.data()[run] = static_cast<ptrdiff_t>((y * width + x) * bytes);
  }
  return true;
}

void Frame::StageRows(const uint32_t* image, int64_t begin, int64_t end, uint8_t* frame) const {
  const int32_t left = std::min(geometry.pad_left, width);
  const int32_t inside = std::min(geometry.input_width, width - left);
  const size_t left_bytes = pixel_bytes * static_cast<size_t>(left);
  const size_t inside_bytes = pixel_bytes * static_cast<size_t>(inside);
  for (int64_t y = begin; y < end; ++y) {
    uint8_t* const row = frame + static_cast<size_t>(y) * RowBytes();
    const int64_t input_y = y - geometry.pad_top;
    if (input_y < 0 || input_y >= geometry.input_height) {
      std::memset(row, 0, RowBytes());
      continue;
    }
    const uint32_t* words = image + input_y * geometry.input_width * pixel_words;
    std::memset(row, 0, left_bytes);
    if (isa->stage == nullptr) {
      std::memcpy(row + left_bytes, words, inside_bytes);
    } else {
      isa->stage(words, int64_t{inside} * (pixel_words / tap_words), tap_words, row + left_bytes);
    }
    std::memset(row + left_bytes + inside_bytes, 0, RowBytes() - left_bytes - inside_bytes);
  }
}

}  // namespace litebnn
