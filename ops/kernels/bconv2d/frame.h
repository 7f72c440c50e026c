// Where a convolution's windows are read: in the packed input, or in a frame that a copy of it is staged into with the
// padding around it. Either way the window of an output pixel is a few runs of words, at offsets that are the same for
// every pixel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa/isa.h"
#include "kernels/platform/aligned_buffer.h"

namespace litebnn {

// The same convolution as one long row of pixels, without ends that an ISA had to stop at, where every window is a
// pixel of its own; otherwise `geometry` itself.
Bconv2dGeometry Flatten(const Bconv2dSpec& spec, const Bconv2dGeometry& geometry);

class Frame {
 public:
  // `runs` are those of the filter. False where memory ran out, or would for a hostile dilation.
  bool Resize(const Isa& isa, const Bconv2dSpec& spec, const Bconv2dGeometry& geometry, int32_t runs);
  // Stages rows [begin, end) of the frame; not to be called for one that is in place.
  void StageRows(const uint32_t* image, int64_t begin, int64_t end, uint8_t* frame) const;

  bool has_padding() const { return has_padding_; }
  bool in_place() const { return in_place_; }
  // Bytes of one image's frame: none in place.
  size_t frame_bytes() const { return in_place_ ? 0 : AlignUp(RowBytes() * static_cast<size_t>(height_)); }
  int32_t height() const { return height_; }
  size_t RowBytes() const { return pixel_bytes_ * static_cast<size_t>(width_); }
  size_t pixel_bytes() const { return pixel_bytes_; }
  const ptrdiff_t* run_offsets() const { return run_offsets_.data(); }
  size_t bytes() const { return run_offsets_.bytes(); }

 private:
  const Isa* isa_ = nullptr;
  Bconv2dGeometry geometry_ = {};
  int32_t pixel_words_ = 0;
  size_t pixel_bytes_ = 0;
  bool has_padding_ = false, in_place_ = false;
  int32_t height_ = 0, width_ = 0;
  AlignedBuffer<ptrdiff_t> run_offsets_;  // [runs]
};

}  // namespace litebnn
