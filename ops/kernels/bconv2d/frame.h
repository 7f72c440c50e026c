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

struct Frame {
  // `runs` are those of the filter. False where memory ran out, or would for a hostile dilation.
  bool Resize(const Isa& isa, const Bconv2dSpec& spec, const Bconv2dGeometry& geometry, int32_t runs);
  // Stages rows [begin, end) of the frame; not to be called for one that is in place.
  void StageRows(const uint32_t* image, int64_t begin, int64_t end, uint8_t* frame) const;
  size_t RowBytes() const { return pixel_bytes * static_cast<size_t>(width); }
  // One image's share of the workspace; an input that is read in place needs none.
  size_t FrameBytes() const { return in_place ? 0 : AlignUp(RowBytes() * static_cast<size_t>(height)); }

  const Isa* isa = nullptr;
  Bconv2dGeometry geometry = {};
  int32_t pixel_words = 0, tap_words = 0;  // a tap is a pixel's words of one group
  size_t pixel_bytes = 0, tap_bytes = 0;   // staged
  bool has_padding = false, in_place = false;
  int32_t height = 0, width = 0;
  AlignedBuffer<ptrdiff_t> run_offsets;  // [runs]
};

}  // namespace litebnn
