// The templates compute convolutions whose filters are too long for the 16-bit sums of the table lookup kernels. A
// filter of this kind is packed in pieces, each in the layout of a separate filter (lookup_weights.h). The dot product
// of a window is the sum of the dot products of the pieces.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa/isa.h"
#include "kernels/isa/shared/arithmetic.h"
#include "kernels/isa/shared/lookup_weights.h"
#include "kernels/isa/shared/output.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

// The largest number of pixels that are computed together, so that each piece of the filter is loaded once for all of
// them.
constexpr int32_t kLongPixels = 16;

// PiecesMemory is the memory in which one thread keeps intermediate results.
struct PiecesMemory {
  alignas(64) int32_t popcounts[kLongPixels][kTileChannels];
  // The array `dots` has the dot products over one piece of the filter. The kernel writes them as float outputs, with a
  // multiplier of 1 and a bias of 0.
  alignas(64) float dots[kLongPixels][kTileChannels];
  float ones[kTileChannels], zeros[kTileChannels];
};

// Computes a tile of channels for adjacent pixels of one row. `first` points to the window of the first pixel.
template <typename Lanes, typename BconvPiece>
void BconvLongTile(const BconvTask& task, const uint8_t* first, int64_t pixel, int32_t pixels, int32_t channel,
                   int32_t channels, PiecesMemory& memory, BconvPiece bconv_piece) {
  const ptrdiff_t no_offset = 0;
  BconvTask piece = task;
  piece.runs = 1;
  piece.run_offsets = &no_offset;
  piece.output_width = pixels;
  piece.channels = channels;
  piece.multiplier = memory.ones;
  piece.bias = memory.zeros;
  piece.clamp_min = INT32_MIN, piece.clamp_max = INT32_MAX;
  piece.corrections = nullptr;
  piece.output_type = Bconv2dOutputType::kFloat32;
  piece.output = memory.dots;
  piece.epilogue_kind = EpilogueKind::kNone;
  piece.output_channels = kTileChannels;
  piece.first_channel = 0;
  for (int32_t i = 0; i < kTileChannels; ++i) memory.ones[i] = 1.0f, memory.zeros[i] = 0.0f;
  for (int32_t p = 0; p < pixels; ++p) {
    for (int32_t i = 0; i < kTileChannels; ++i) memory.popcounts[p][i] = 0;
  }

  const int32_t run_taps = task.run_words / task.tap_words;
  const uint8_t* weights = task.weights;
  ForEachPiece(task.runs * run_taps, task.tap_words, [&](int32_t tap, int32_t word, int32_t words) {
    const ptrdiff_t in_run = tap % run_taps * ptrdiff_t{task.tap_words} + word;
    piece.input = first + task.run_offsets[tap / run_taps] + in_run * static_cast<ptrdiff_t>(sizeof(uint32_t));
    piece.run_words = piece.tap_words = words;
    piece.depth = words * kBitsPerWord;
    piece.weights = weights + PiecesBytes(channel, words);
    weights += PiecesBytes(task.channels, words);
    bconv_piece(piece, 0, pixels, 0, channels);
    for (int32_t p = 0; p < pixels; ++p) {
      for (int32_t i = 0; i < channels; ++i) {
        memory.popcounts[p][i] += (piece.depth - static_cast<int32_t>(memory.dots[p][i])) / 2;
      }
    }
  });
  for (int32_t p = 0; p < pixels; ++p) {
    WriteOutputs<Lanes>(task, pixel + p, channel, channels, memory.popcounts[p]);
  }
}

// Implements Isa::bconv for long filters. `bconv_piece` is the kernel for filters of at most kMaxWords words, with the
// same parameters as Isa::bconv.
template <typename Lanes, typename BconvPiece>
void BconvLong(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin,
               int32_t channel_end, PiecesMemory& memory, BconvPiece bconv_piece) {
  const int64_t width = task.output_width;
  for (int64_t pixel = pixel_begin, pixels; pixel < pixel_end; pixel += pixels) {
    const int64_t column = pixel % width;
    pixels = Min(Min<int64_t>(kLongPixels, width - column), pixel_end - pixel);
    const uint8_t* first = task.input + pixel / width * task.row_stride + column * task.pixel_stride;
    for (int32_t channel = channel_begin; channel < channel_end; channel += kTileChannels) {
      BconvLongTile<Lanes>(task, first, pixel, static_cast<int32_t>(pixels), channel,
                           Min(kTileChannels, channel_end - channel), memory, bconv_piece);
    }
  }
}

}  // namespace
}  // namespace litebnn
