// The maximum over a window of floats, for each channel; with it an ISA makes its max_window.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa/isa.h"

namespace litebnn {
// Every ISA's file has its own copy, compiled for its own CPU.
namespace {

// Some floats of an instruction set's vector. Larger(a, b) is a > b ? a : b, also where they do not compare.
struct OneFloat {
  using Vector = float;
  static constexpr int32_t kCount = 1;
  static Vector Set(float value) { return value; }
  static Vector Load(const float* values) { return *values; }
  static void Store(Vector vector, float* values) { *values = vector; }
  static Vector Larger(Vector a, Vector b) { return a > b ? a : b; }
};

// Does as many whole kVectors as there are from `channel` on, and returns the channel behind them.
template <typename Floats, int kVectors>
inline int32_t MaxOfChannels(const FloatWindow& window, int32_t channel, float floor, float* output) {
  constexpr int32_t kChannels = kVectors * Floats::kCount;
  for (; channel <= window.channels - kChannels; channel += kChannels) {
    typename Floats::Vector best[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) best[v] = Floats::Set(floor);
    for (int64_t y = 0; y < window.rows; ++y) {
      const float* tap = window.first + y * window.row_stride + channel;
      for (int64_t x = 0; x < window.columns; ++x, tap += window.channels) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          best[v] = Floats::Larger(Floats::Load(tap + v * Floats::kCount), best[v]);
        }
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) Floats::Store(best[v], output + channel + v * Floats::kCount);
  }
  return channel;
}

template <typename Floats>
inline void MaxWindow(const FloatWindow& window, float floor, float* output) {
  int32_t channel = MaxOfChannels<Floats, 4>(window, 0, floor, output);
  channel = MaxOfChannels<Floats, 1>(window, channel, floor, output);
  MaxOfChannels<OneFloat, 1>(window, channel, floor, output);
}

}  // namespace
}  // namespace litebnn
