// The function computes one window of an int8 max pool. The vectors are those of the compiler, which uses the
// instructions of the ISA for which a file is compiled.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/isa/isa.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

using SixteenLevels = int8_t __attribute__((vector_size(16)));

// Computes the maxima in the channels from `channel` on, kVectors vectors of type Vector at a time. Returns the first
// of the channels that are left because they do not fill these vectors.
template <typename Vector, int kVectors>
__attribute__((always_inline)) inline int32_t MaxOfInt8Channels(const Int8Window& window, int32_t channel,
                                                                int8_t* output) {
  constexpr auto kLanes = static_cast<int32_t>(sizeof(Vector)), kChannels = kVectors * kLanes;
  const Vector least = Vector{} + window.least, most = Vector{} + window.most;
  for (; channel <= window.channels - kChannels; channel += kChannels) {
    Vector best[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) best[v] = least;
    for (int64_t y = 0; y < window.rows; ++y) {
      const int8_t* tap = window.first + y * window.row_stride + channel;
      for (int64_t x = 0; x < window.columns; ++x, tap += window.channels) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          Vector level;
          std::memcpy(&level, tap + v * kLanes, sizeof(level));
          best[v] = level > best[v] ? level : best[v];
        }
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      best[v] = best[v] < most ? best[v] : most;
      std::memcpy(output + channel + v * kLanes, &best[v], sizeof(best[v]));
    }
  }
  return channel;
}

inline void MaxInt8Window(const Int8Window& window, int8_t* output) {
  int32_t channel = MaxOfInt8Channels<SixteenLevels, 4>(window, 0, output);
  channel = MaxOfInt8Channels<SixteenLevels, 1>(window, channel, output);
  for (; channel < window.channels; ++channel) {
    int8_t best = window.least;
    for (int64_t y = 0; y < window.rows; ++y) {
      const int8_t* tap = window.first + y * window.row_stride + channel;
      for (int64_t x = 0; x < window.columns; ++x, tap += window.channels) best = *tap > best ? *tap : best;
    }
    output[channel] = best < window.most ? best : window.most;
  }
}

}  // namespace
}  // namespace litebnn
