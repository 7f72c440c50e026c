// The file declares the function in bconv.S and its arguments.
#pragma once

#include <cstddef>
#include <cstdint>

namespace litebnn {

// The longest possible vectors, which have 2048 bits, have this many words.
constexpr int32_t kMaxLanes = 64;
// A tile of weights has this many channels.
constexpr int32_t kTileChannels = 64;

// For each pixel of a tile, TilePixels has the address of its window, and the address of its padding corrections. If
// the layer has no corrections, the second address is not used.
struct TilePixels {
  const uint8_t* windows[kMaxLanes];
  const int32_t* corrections[kMaxLanes];
};

// Sme2Layer has the arguments of litebnn_sme2_bconv. bconv.S relies on the order of the members, and on each member
// taking eight bytes.
struct Sme2Layer {
  // The members from `base` to `zero_point` come first, because bconv.S broadcasts them to vectors. Its instruction for
  // this can only read at offsets below 256 bytes.
  alignas(8) int32_t base;  // depth - 64 * words; for packed outputs 32 * words
  alignas(8) int32_t clamp_min;
  alignas(8) int32_t clamp_max;
  alignas(8) float low;
  alignas(8) float high;
  alignas(8) int32_t zero_point;

  int64_t output_type;  // value of Bconv2dOutputType
  int64_t pixels;
  const uint8_t* window;  // window of the first pixel; `row` is that of its row's first pixel
  const uint8_t* row;
  int64_t row_stride, pixel_stride;
  int64_t left_in_row, output_width;

  int64_t runs, run_words, words;
  const ptrdiff_t* run_offsets;

  const uint8_t* weights;
  int64_t channels, channels_left;  // channels to compute; channels from the first one to the group's end
  const float* multiplier;
  const float* bias;
  const int32_t* threshold;

  uint8_t* output;        // first channel of the first pixel; for packed outputs all words of the first pixel
  int64_t output_stride;  // bytes from one pixel to the next
  int64_t first_bit;      // bit of the first channel in a pixel's words
  const uint8_t* addend;  // addend of the first output, or null
  int64_t rectify_sum;

  const int32_t* corrections;  // corrections of the first channel, or null
  const int32_t* row_correction;
  const int32_t* column_correction;
  int64_t column;  // column of the first pixel

  uint8_t* panel;  // the transposed windows of a tile of pixels, [words][lanes] and three more words
  TilePixels* tile;
};
static_assert(sizeof(Sme2Layer) == 35 * 8, "as bconv.S reads it");

extern "C" void litebnn_sme2_bconv(const Sme2Layer* layer);

}  // namespace litebnn
