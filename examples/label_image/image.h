// Images: from a file's bytes to the values of a model's input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace litebnn::examples {

// Rows from the top, pixels from the left, 1 (grey) or 3 (red, green, blue) interleaved channels.
struct Image {
  int height;
  int width;
  int channels;
  std::vector<uint8_t> pixels;
};

// Decodes BMP, PNG, JPEG or binary PPM/PGM to 1 or 3 channels: colour is reduced to luma, grey is repeated, and alpha
// is dropped. Throws Error for other, damaged or truncated files, and for more than 2^26 pixels.
Image DecodeImage(const std::string& bytes, int channels);

// Bilinear resize to [height, width, channels], the same as TensorFlow's RESIZE_BILINEAR without align_corners and
// half_pixel_centers. Output pixel (y, x) samples the image at (y · image.height / height, x · image.width / width).
std::vector<float> ResizeBilinear(const Image& image, int height, int width);

// Bicubic resize, the same as TensorFlow 1's resize_bicubic, at the same samples.
std::vector<float> ResizeBicubic(const Image& image, int height, int width);

// The square in the middle of an image whose side is a share (0 to 1) of the image's shorter one.
Image CenterCrop(const Image& image, float share);

}  // namespace litebnn::examples
