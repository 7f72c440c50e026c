// Images: from a file's bytes to the values of a model's input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace litebnn::examples {

// Rows from the top, pixels from the left, 1 (grey) or 3 (red, green, blue) channels interleaved.
struct Image {
  int height;
  int width;
  int channels;
  std::vector<uint8_t> pixels;
};

// Decodes BMP, PNG, JPEG or binary PPM/PGM into 1 or 3 channels: colour becomes its luma, grey is repeated, and alpha
// is dropped. Throws Error for any other file, a damaged or cut off one, and images above 2^26 pixels.
Image DecodeImage(const std::string& bytes, int channels);

// Bilinear resize to [height, width, channels] as TensorFlow's RESIZE_BILINEAR does it with align_corners and
// half_pixel_centers off: output pixel (y, x) samples the image at (y · image.height / height, x · image.width /
// width).
std::vector<float> ResizeBilinear(const Image& image, int height, int width);

}  // namespace litebnn::examples
