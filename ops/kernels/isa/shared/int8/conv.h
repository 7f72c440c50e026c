// The templates compute int8 convolutions on vectors. The template parameter `Dots` is a class of an ISA, with the
// following operations:
//   Ints, kLanes              a vector of int32 sums, one per channel
//   Add(sums, x, w)           adds the products of a step's bytes, which are in all lanes of `x`, with the weights `w`
//   Round(sums, ..., &check)  multiplies sums by their scales; `check` tells if all results are surely exact
//   RoundExactly(sums, ...)   does the same with exact integers, if Round is not always exact
//   Store(values, ...)        adds the zero point, clamps and writes bytes
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/isa/isa.h"
#include "kernels/isa/shared/arithmetic.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

template <typename Dots, int kPixels, int kVectors>
struct Int8Tile {
  using Ints = typename Dots::Ints;
  static constexpr int32_t kChannels = kVectors * Dots::kLanes;

  // Computes the convolution sums (bias plus products) of kPixels windows, for the output channels from `channel` on.
  // The windows are pixel_stride bytes apart.
  __attribute__((always_inline)) static void Sum(const Int8ConvTask& task, const uint8_t* window, int32_t channel,
                                                 Ints (&sums)[kPixels][kVectors]) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Ints bias = Dots::Load(task.bias + channel + v * Dots::kLanes);
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p) sums[p][v] = bias;
    }
    const uint8_t* weights = task.weights + channel / Dots::kLanes * task.vector_bytes;
    Dots::template AddWindows<kPixels, kVectors>(task, window, weights, sums);
  }

  // Computes one pixel with exact integers. The function is not inlined, because few pixels need it.
  __attribute__((noinline, cold)) static void WriteExactly(const Int8ConvTask& task, const uint8_t* window,
                                                           int32_t channel, int8_t* output) {
    Ints sums[1][kVectors];
    Int8Tile<Dots, 1, kVectors>::Sum(task, window, channel, sums);
    for (int v = 0; v < kVectors; ++v) {
      const int32_t first = channel + v * Dots::kLanes;
      sums[0][v] = Dots::RoundExactly(sums[0][v], task.multiplier + first, task.shift + first);
    }
    Dots::Store(sums[0], task, output, Min(kChannels, task.channels - channel));
  }

  __attribute__((always_inline)) static void Write(const Int8ConvTask& task, const uint8_t* window, int32_t channel,
                                                   int8_t* output) {
    Ints sums[kPixels][kVectors];
    Sum(task, window, channel, sums);
    const int32_t channels = Min(kChannels, task.channels - channel);
    // All pixels are rounded before the first one is stored. Otherwise the scales of the channels would be loaded again
    // for each pixel, because a compiler must assume that a store may modify them.
    typename Dots::Check checks[kPixels] = {};
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sums[p][v] = Dots::Round(sums[p][v], task, channel + v * Dots::kLanes, checks[p]);
      }
    }
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) {
      Dots::Store(sums[p], task, output, channels);
      if constexpr (!Dots::kIsExact) {
        if (__builtin_expect(checks[p].IsUnsure(), 0)) {
          WriteExactly(task, window + p * task.pixel_stride, channel, output);
        }
      }
      output += task.output_channels;
    }
  }

  // Writes one row of output pixels, tile by tile. If the row does not consist of whole tiles, the last tile overlaps
  // the tile before it, and computes some pixels again.
  __attribute__((noinline)) static void WriteRow(const Int8ConvTask& task, const uint8_t* row, int32_t channel,
                                                 int8_t* output) {
    const Int8ConvTask copy = task;  // because a compiler must assume that any store may modify the original
    const int32_t last = copy.output_width - kPixels;
    for (int32_t x = 0; x <= last; x = x == last ? last + 1 : Min(x + kPixels, last)) {
      Write(copy, row + x * copy.pixel_stride, channel, output + ptrdiff_t{x} * copy.output_channels);
    }
  }
};

// Adds the products of windows and weights, one step (kInt8StepBytes bytes of a window's row) after the other. A trait
// `Dots` for a CPU whose instructions do several steps at once replaces this function by its own.
template <typename Dots, int kPixels, int kVectors>
__attribute__((always_inline)) inline void AddSteps(const Int8ConvTask& task, const uint8_t* window,
                                                    const uint8_t* weights,
                                                    typename Dots::Ints (&sums)[kPixels][kVectors]) {
  typename Dots::Ints local[kPixels][kVectors];
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) local[p][v] = sums[p][v];
  }
  const ptrdiff_t pixel_stride = task.pixel_stride, vector_bytes = task.vector_bytes;
  const ptrdiff_t next_row = task.frame_row - ptrdiff_t{task.steps} * kInt8StepBytes;
  int32_t left = task.steps;
  for (int32_t all = task.filter_height * task.steps; all > 0; --all) {
    typename Dots::Weights w[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) w[v] = Dots::LoadWeights(weights + v * vector_bytes);
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) {
      const auto bytes = Dots::LoadStep(window + p * pixel_stride);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) Dots::Add(local[p][v], bytes, w[v]);
    }
    weights += Dots::kLanes * kInt8StepBytes;
    window += kInt8StepBytes;
    if (--left == 0) window += next_row, left = task.steps;
  }
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[p][v] = local[p][v];
  }
}

// Writes one row of output pixels in kVectors vectors of channels.
template <typename Dots, int kPixels, int kVectors>
inline void WriteTileRow(const Int8ConvTask& task, int64_t y, int32_t channel) {
  int8_t* const output = task.output + y * task.output_width * task.output_channels + channel;
  Int8Tile<Dots, kPixels, kVectors>::WriteRow(task, task.frame + y * task.row_stride, channel, output);
}

// Implements Int8ConvKernel::rows with tiles of kPixels pixels and kVectors vectors of channels. Channels that do not
// fill a tile are computed vector by vector.
template <typename Dots, int kPixels, int kVectors>
void Int8ConvRows(const Int8ConvTask& task, int64_t begin, int64_t end) {
  // A tile with only one vector of channels has more pixels than other tiles. The CPU then has enough independent sums
  // to work on at the same time.
  constexpr int kNarrowPixels = 8;
  for (int64_t y = begin; y < end; ++y) {
    for (int32_t channel = 0, vectors; channel < task.channels; channel += vectors * Dots::kLanes) {
      const bool fills_tile = task.channels - channel > (kVectors - 1) * Dots::kLanes;
      vectors = fills_tile && task.output_width >= kPixels ? kVectors : 1;
      if (vectors == kVectors) {
        WriteTileRow<Dots, kPixels, kVectors>(task, y, channel);
      } else if (task.output_width >= kNarrowPixels) {
        WriteTileRow<Dots, kNarrowPixels, 1>(task, y, channel);
      } else {
        WriteTileRow<Dots, 1, 1>(task, y, channel);
      }
    }
  }
}

}  // namespace
}  // namespace litebnn
