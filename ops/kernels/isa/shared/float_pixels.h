// The templates compute pixels of floats, channel by channel. One computes the maximum of a window. The other
// multiplies a pixel by a gate, applies a PRELU and adds another pixel. An ISA implements max_window and gate_pixels
// with these templates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa/isa.h"
#include "kernels/isa/shared/lanes.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

// Computes the maxima of a window in groups of kVectors vectors of channels, from `channel` on. Returns the first of
// the channels that are left because they do not fill a group.
template <typename Lanes, int kVectors, bool kMultiplies>
inline int32_t MaxOfChannels(const FloatWindow& window, int32_t channel, float floor, float* output) {
  constexpr int32_t kChannels = kVectors * Lanes::kLanes;
  for (; channel <= window.channels - kChannels; channel += kChannels) {
    typename Lanes::Floats best[kVectors], multiplier[kVectors] = {};
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      best[v] = Lanes::Set(floor);
      if (kMultiplies) multiplier[v] = Lanes::Load(window.multiplier + channel + v * Lanes::kLanes);
    }
    for (int64_t y = 0; y < window.rows; ++y) {
      const float* tap = window.first + y * window.row_stride + channel;
      for (int64_t x = 0; x < window.columns; ++x, tap += window.channels) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          const auto value = Lanes::Load(tap + v * Lanes::kLanes);
          best[v] = Lanes::Larger(kMultiplies ? Lanes::Multiply(value, multiplier[v]) : value, best[v]);
        }
      }
    }
    if (window.addend != nullptr) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        best[v] = Lanes::Add(best[v], Lanes::Load(window.addend + channel + v * Lanes::kLanes));
        if (window.rectify) best[v] = Lanes::Rectify(best[v]);
      }
    }
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) Lanes::Store(best[v], output + channel + v * Lanes::kLanes);
  }
  return channel;
}

template <typename Lanes, bool kMultiplies>
inline void MaxOfWindow(const FloatWindow& window, float floor, float* output) {
  // The number of vectors of channels whose maxima are computed at the same time. Their maxima and multipliers fit the
  // registers. Most layers have at most 64 channels, which are four vectors of 16 lanes.
  constexpr int kVectors = kMultiplies || Lanes::kLanes > 4 ? 4 : 8;
  int32_t channel = MaxOfChannels<Lanes, kVectors, kMultiplies>(window, 0, floor, output);
  channel = MaxOfChannels<Lanes, 1, kMultiplies>(window, channel, floor, output);
  MaxOfChannels<OneLane, 1, kMultiplies>(window, channel, floor, output);
}

template <typename Lanes>
inline void MaxWindow(const FloatWindow& window, float floor, float* output) {
  window.multiplier == nullptr ? MaxOfWindow<Lanes, false>(window, floor, output)
                               : MaxOfWindow<Lanes, true>(window, floor, output);
}

// GatedPixel has the addresses of the operands for one pixel.
struct GatedPixel {
  const float *input, *gate, *slope, *addend;
  float* output;
};

// Computes `count` channels of one pixel, from `channel` on. `count` is 1 to kLanes.
template <typename Lanes, bool kAdds>
__attribute__((always_inline)) inline void GateChannels(const GatedPixels& pixels, const GatedPixel& pixel,
                                                        int32_t channel, int32_t count) {
  const auto load = [=](const float* values) { return Lanes::LoadFirst(values + channel, count); };
  auto value = Lanes::Multiply(load(pixel.input), load(pixel.gate));
  if (pixels.rectify_product) value = Lanes::Rectify(value);
  value = Lanes::Prelu(value, load(pixel.slope));
  if (kAdds) value = Lanes::Add(value, load(pixel.addend));
  if (kAdds && pixels.rectify_sum) value = Lanes::Rectify(value);
  Lanes::StoreFirst(value, pixel.output + channel, count);
}

template <typename Lanes, bool kAdds>
inline void GateEach(const GatedPixels& pixels, int64_t count) {
  const int32_t channels = pixels.channels;
  GatedPixel pixel = {pixels.input, pixels.gate, pixels.slope, pixels.addend, pixels.output};
  for (; count > 0; --count) {
    int32_t channel = 0;
    for (; channel <= channels - Lanes::kLanes; channel += Lanes::kLanes) {
      GateChannels<Lanes, kAdds>(pixels, pixel, channel, Lanes::kLanes);
    }
    if (channel < channels) GateChannels<Lanes, kAdds>(pixels, pixel, channel, channels - channel);
    pixel.input += pixels.input_stride;
    pixel.gate += pixels.gate_stride;
    if (kAdds) pixel.addend += channels;
    pixel.output += channels;
  }
}

template <typename Lanes>
inline void GatePixels(const GatedPixels& pixels, int64_t count) {
  pixels.addend == nullptr ? GateEach<Lanes, false>(pixels, count) : GateEach<Lanes, true>(pixels, count);
}

}  // namespace
}  // namespace litebnn
