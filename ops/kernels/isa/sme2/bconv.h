// What bconv.S is told, and how it is called.
#pragma once

#include <cstddef>
#include <cstdint>

namespace litebnn {

// Of 2048 bits, the longest vectors that there can be.
constexpr int32_t kMaxLanes = 64;
// Channels whose weights lie side by side.
constexpr int32_t kTileChannels = 64;

// For each pixel of a tile: its window, and where it has corrections, those of the first channel.
struct TilePixels {
  const uint8_t* windows[kMaxLanes];
  const int32_t* corrections[kMaxLanes];
};

// In the order of bconv.S; each takes eight bytes.
struct Sme2Layer {
  // Vectors are filled with these, which can lie in the first 256 bytes.
  alignas(8) int32_t base;  // depth - 64 * words; for packed outputs 32 * words
  alignas(8) int32_t clamp_min;
  alignas(8) int32_t clamp_max;
  alignas(8) float low;
  alignas(8) float high;
  alignas(8) int32_t zero_point;

  int64_t output_type;  // as Bconv2dOutputType
  int64_t pixels;
  const uint8_t* window;  // of the first pixel, and of the first one in its row
  const uint8_t* row;
  int64_t row_stride, pixel_stride;
  int64_t left_in_row, output_width;

  int64_t runs, run_words, words;
  const ptrdiff_t* run_offsets;

  const uint8_t* weights;
  int64_t channels, channels_left;  // to be computed; from the first of those to the last of the group
  const float* multiplier;
  const float* bias;
  const int32_t* threshold;

  uint8_t* output;        // the first pixel's first channel, or all words of the first pixel
  int64_t output_stride;  // bytes from a pixel to the next
  int64_t first_bit;      // of the first channel in a pixel's words
  const uint8_t* addend;  // of the first output, or null
  int64_t rectify_sum;

  const int32_t* corrections;  // of the first channel, or null
  const int32_t* row_correction;
  const int32_t* column_correction;
  int64_t column;  // of the first pixel

  uint8_t* panel;  // takes the windows of a tile of pixels, [words][lanes] and three words more
  TilePixels* tile;
};
static_assert(sizeof(Sme2Layer) == 35 * 8, "as bconv.S reads it");

extern "C" void litebnn_sme2_bconv(const Sme2Layer* layer);

}  // namespace litebnn
