// The maximum over a window of floats, for each channel; with it an ISA makes its max_window.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa/isa.h"
#include "kernels/isa/shared/lanes.h"

namespace litebnn {
// Every ISA's file has its own copy, compiled for its own CPU.
namespace {

// Does as many whole kVectors as there are from `channel` on, and returns the channel behind them.
template <typename Lanes, int kVectors>
inline int32_t MaxOfChannels(const FloatWindow& window, int32_t channel, float floor, float* output) {
  constexpr int32_t kChannels = kVectors * Lanes::kLanes;
  for (; channel <= window.channels - kChannels; channel += kChannels) {
    typename Lanes::Floats best[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) best[v] = Lanes::Set(floor);
    for (int64_t y = 0; y < window.rows; ++y) {
      const float* tap = window.first + y * window.row_stride + channel;
      for (int64_t x = 0; x < window.columns; ++x, tap += window.channels) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          best[v] = Lanes::Larger(Lanes::Load(tap + v * Lanes::kLanes), best[v]);
        }
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) Lanes::Store(best[v], output + channel + v * Lanes::kLanes);
  }
  return channel;
}

template <typename Lanes>
inline void MaxWindow(const FloatWindow& window, float floor, float* output) {
  int32_t channel = MaxOfChannels<Lanes, 4>(window, 0, floor, output);
  channel = MaxOfChannels<Lanes, 1>(window, channel, floor, output);
  MaxOfChannels<OneLane, 1>(window, channel, floor, output);
}

}  // namespace
}  // namespace litebnn
