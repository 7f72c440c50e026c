// Converts images from the bytes of a file to the values of a model's input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace litebnn::programs {

// A decoded image: rows from the top, pixels from the left, 1 (grey) or 3 (red, green, blue) interleaved channels.
struct Image {
  int height;
  int width;
  int channels;
  std::vector<uint8_t> pixels;
};

// Decodes BMP, PNG, JPEG or binary PPM/PGM to 1 or 3 channels: colour is reduced to luma, grey is repeated, and alpha
// is dropped. Throws Error for other, damaged or truncated files, and for more than 2^26 pixels.
Image DecodeImage(const std::string& bytes, int channels);

// One of the input coordinates that contribute to an output coordinate along one axis, and its weight.
struct Tap {
  size_t index;
  float weight;
};
using Taps = std::vector<std::vector<Tap>>;  // the taps of each output coordinate

// The taps (weighted input coordinates) that resize an image: a list for each output row, and a list for each output
// column.
struct Resampling {
  Taps rows, columns;
};

// Bilinear resize to `height` and `width`, the same as TensorFlow's RESIZE_BILINEAR without align_corners and
// half_pixel_centers. Output pixel (y, x) samples the image at (y · image.height / height, x · image.width / width).
Resampling Bilinear(const Image& image, int height, int width);

// Bicubic resize, the same as TensorFlow 1's resize_bicubic. The positions of the samples are those of the bilinear
// resize.
Resampling Bicubic(const Image& image, int height, int width);

// Returns convert(value, channel) for each value of the resized image, [rows, columns, channels]. A value is from 0 to
// 255, or a little outside after a bicubic resize.
template <class T, class Convert>
std::vector<T> Resize(const Image& image, const Resampling& resampling, Convert convert) {
  const auto channels = static_cast<size_t>(image.channels);
  const size_t row_values = static_cast<size_t>(image.width) * channels;
  std::vector<T> resized;
  resized.reserve(resampling.rows.size() * resampling.columns.size() * channels);
  for (const std::vector<Tap>& row : resampling.rows) {
    for (const std::vector<Tap>& column : resampling.columns) {
      for (size_t c = 0; c < channels; ++c) {
        float value = 0;
        for (const Tap& y : row) {
          const uint8_t* pixels = image.pixels.data() + y.index * row_values + c;
          float across = 0;
          for (const Tap& x : column) across += static_cast<float>(pixels[x.index * channels]) * x.weight;
          value += across * y.weight;
        }
        resized.push_back(convert(value, c));
      }
    }
  }
  return resized;
}

// Cuts a square out of the middle of an image. The square's side is `share` (0 to 1) of the image's shorter side.
Image CenterCrop(const Image& image, float share);

}  // namespace litebnn::programs
