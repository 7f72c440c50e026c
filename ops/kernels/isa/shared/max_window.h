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
template <typename Lanes, int kVectors, bool kMultiplies, bool kAdds>
inline int32_t MaxOfChannels(const FloatWindow& window, int32_t channel, float floor, float* output) {
  constexpr int32_t kChannels = kVectors * Lanes::kLanes;
  for (; channel <= window.channels - kChannels; channel += kChannels) {
    typename Lanes::Floats best[kVectors], multiplier[kVectors] = {};
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      best[v] = Lanes::Set(floor);
      if (kMultiplies) multiplier[v] = Lanes::Load(window.multiplier + channel + v * Lanes::kLanes);
    }
    for (int64_t y = 0; y < window.rows; ++y) {
      const float* tap = window.first + y * window.row_stride + channel;
      for (int64_t x = 0; x < window.columns; ++x, tap += window.channels) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          const auto value = Lanes::Load(tap + v * Lanes::kLanes);
          best[v] = Lanes::Larger(kMultiplies ? Lanes::Multiply(value, multiplier[v]) : value, best[v]);
        }
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int32_t at = channel + v * Lanes::kLanes;
      auto value = best[v];
      if (kAdds) value = Lanes::Add(value, Lanes::Load(window.addend + at));
      if (kAdds && window.rectify) value = Lanes::Rectify(value);
      Lanes::Store(value, output + at);
    }
  }
  return channel;
}

template <typename Lanes, bool kMultiplies, bool kAdds>
inline void MaxOfWindow(const FloatWindow& window, float floor, float* output) {
  int32_t channel = MaxOfChannels<Lanes, 4, kMultiplies, kAdds>(window, 0, floor, output);
  channel = MaxOfChannels<Lanes, 1, kMultiplies, kAdds>(window, channel, floor, output);
  MaxOfChannels<OneLane, 1, kMultiplies, kAdds>(window, channel, floor, output);
}

template <typename Lanes>
inline void MaxWindow(const FloatWindow& window, float floor, float* output) {
  if (window.multiplier == nullptr) {
    window.addend == nullptr ? MaxOfWindow<Lanes, false, false>(window, floor, output)
                             : MaxOfWindow<Lanes, false, true>(window, floor, output);
  } else {
    window.addend == nullptr ? MaxOfWindow<Lanes, true, false>(window, floor, output)
                             : MaxOfWindow<Lanes, true, true>(window, floor, output);
  }
}

}  // namespace
}  // namespace litebnn
