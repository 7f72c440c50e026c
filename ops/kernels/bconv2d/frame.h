// The memory from which a convolution's windows are read: the packed input itself, or a frame, which is a padded copy
// of one image. The window of an output pixel consists of a few runs, which are words that are contiguous in memory.
// The offsets of the runs from the window's start are the same for all pixels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa/isa.h"
#include "kernels/platform/aligned_buffer.h"

namespace litebnn {

// If every window is exactly one pixel, returns a geometry in which all images of the batch form one long row of
// pixels. A tile of pixels can then span rows and images. Otherwise returns `geometry`.
Bconv2dGeometry Flatten(const Bconv2dSpec& spec, const Bconv2dGeometry& geometry);

struct Frame {
  // Sets all members for a new geometry. `runs` is the number of a window's runs (contiguous words),
  // PackedFilter::runs. Returns false if memory ran out, or if a hostile dilation makes the frame (the padded image)
  // too large.
  bool Resize(const Isa& isa, const Bconv2dSpec& spec, const Bconv2dGeometry& geometry, int32_t runs);
  // Writes rows [begin, end) of the frame: an image's packed rows and the padding around them. This function must not
  // be called if `in_place` is true, because there is no frame then.
  void StageRows(const uint32_t* image, int64_t begin, int64_t end, uint8_t* frame) const;
  size_t RowBytes() const { return pixel_bytes * static_cast<size_t>(width); }
  // The bytes of the workspace that the frame of one image takes; 0 if the windows are read from the input itself.
  size_t FrameBytes() const { return in_place ? 0 : AlignUp(RowBytes() * static_cast<size_t>(height)); }

  const Isa* isa = nullptr;
  Bconv2dGeometry geometry = {};
  int32_t pixel_words = 0, tap_words = 0;  // tap_words: a pixel's words in one group
  size_t pixel_bytes = 0, tap_bytes = 0;   // in the staged layout
  bool has_padding = false, in_place = false;
  int32_t height = 0, width = 0;
  AlignedBuffer<ptrdiff_t> run_offsets;  // [runs]
};

}  // namespace litebnn
