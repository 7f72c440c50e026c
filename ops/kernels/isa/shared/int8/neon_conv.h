// The file has the part of int8 convolutions that all NEON CPUs share: everything but the multiplications by weights.
// SQRDMULH does exactly the multiplication of TensorFlow Lite's requantization.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "kernels/isa/shared/int8/conv.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

template <int kNumber>
struct Step {
  static constexpr int kStep = kNumber;
};

struct FourDots {
  using Ints = int32x4_t;
  static constexpr int32_t kLanes = 4;
  static constexpr bool kIsExact = true;
  struct Check {};

  static Ints Load(const int32_t* values) { return vld1q_s32(values); }

  __attribute__((always_inline)) static Ints Round(Ints sums, const Int8ConvTask& task, int32_t channel, Check&) {
    const Ints right = vnegq_s32(Load(task.shift + channel));
    const Ints high = vqrdmulhq_s32(sums, Load(task.multiplier + channel));
    // Negative numbers are decremented before they are shifted, so that halves round away from zero.
    return vrshlq_s32(vaddq_s32(high, vshrq_n_s32(vandq_s32(high, right), 31)), right);
  }

  template <int kVectors>
  __attribute__((always_inline)) static void Store(const Ints (&values)[kVectors], const Int8ConvTask& task,
                                                   int8_t* output, int32_t channels) {
    const int16x8_t zero_point = vdupq_n_s16(static_cast<int16_t>(task.zero_point));
    const int8x16_t low = vdupq_n_s8(static_cast<int8_t>(task.output_min));
    const int8x16_t high = vdupq_n_s8(static_cast<int8_t>(task.output_max));
    const auto narrow = [&](int v) __attribute__((always_inline)) {
      return vqmovn_s16(vqaddq_s16(vcombine_s16(vqmovn_s32(values[v]), vqmovn_s32(values[v + 1])), zero_point));
    };
    if constexpr (kVectors == 4) {
      const int8x16_t bytes = vminq_s8(vmaxq_s8(vcombine_s8(narrow(0), narrow(2)), low), high);
      if (__builtin_expect(channels >= 4 * kLanes, 1)) return vst1q_s8(output, bytes);
      std::memcpy(output, &bytes, static_cast<size_t>(channels));
    } else {
      static_assert(kVectors == 1, "a tile has one vector of channels or four");
      const int16x4_t four = vqmovn_s32(values[0]);
      const int8x8_t bytes = vqmovn_s16(vqaddq_s16(vcombine_s16(four, four), zero_point));
      const int8x8_t clamped = vmin_s8(vmax_s8(bytes, vget_low_s8(low)), vget_low_s8(high));
      std::memcpy(output, &clamped, static_cast<size_t>(Min(channels, kLanes)));
    }
  }
};

// Adds the products of kPixels windows and their weights to `sums`. The loop loads 16 bytes from a row of each window,
// and calls Dots::AddStep<i> for each step i (four bytes) of these bytes.
template <typename Dots, int kPixels, int kVectors>
__attribute__((always_inline)) inline void AddStepsByFours(const Int8ConvTask& task, const uint8_t* window,
                                                           const uint8_t* weights,
                                                           int32x4_t (&sums)[kPixels][kVectors]) {
  constexpr int32_t kSteps = 4, kWeightsBytes = FourDots::kLanes * kInt8StepBytes;
  // Each vector of channels has its own pointer, so that a load can also advance it.
  const uint8_t* vectors[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) vectors[v] = weights + v * task.vector_bytes;
  for (int32_t y = 0; y < task.filter_height; ++y, window += task.frame_row) {
    const uint8_t* row = window;
    for (int32_t left = task.steps; left > 0; left -= kSteps, row += kSteps * kInt8StepBytes) {
      int8x16_t x[kPixels];
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p) x[p] = vreinterpretq_s8_u8(vld1q_u8(row + p * task.pixel_stride));
      const auto add = [&](auto step) __attribute__((always_inline)) {
        int8x16_t w[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          w[v] = vreinterpretq_s8_u8(vld1q_u8(vectors[v]));
          vectors[v] += kWeightsBytes;
        }
#pragma GCC unroll 8
        for (int p = 0; p < kPixels; ++p) Dots::template AddStep<decltype(step)::kStep>(x[p], w, sums[p]);
      };
      add(Step<0>());
      if (left > 1) add(Step<1>());
      if (left > 2) add(Step<2>());
      if (left > 3) add(Step<3>());
    }
  }
}

// LongDots has the multiplications for CPUs without dot product instructions. A 16-bit number has room for the sum of
// two products of bytes, because no weight is -128.
struct LongDots : FourDots {
  template <int kPixels, int kVectors>
  __attribute__((always_inline)) static void AddWindows(const Int8ConvTask& task, const uint8_t* window,
                                                        const uint8_t* weights, Ints (&sums)[kPixels][kVectors]) {
    AddStepsByFours<LongDots>(task, window, weights, sums);
  }

  // The low half of each w[v] has the weights of taps 0 and 1 for four channels. The high half has the weights of taps
  // 2 and 3 for the same channels.
  template <int kStep, int kVectors>
  __attribute__((always_inline)) static void AddStep(int8x16_t x, const int8x16_t (&w)[kVectors],
                                                     Ints (&sums)[kVectors]) {
    constexpr int kPair = 2 * kStep % 4;
    const int16x8_t pairs = vreinterpretq_s16_s8(x);
    const int16x4_t four = kStep < 2 ? vget_low_s16(pairs) : vget_high_s16(pairs);
    const int8x8_t first = vreinterpret_s8_s16(vdup_lane_s16(four, kPair));
    const int8x8_t second = vreinterpret_s8_s16(vdup_lane_s16(four, kPair + 1));
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int16x8_t product = vmull_s8(vget_low_s8(w[v]), first);
      sums[v] = vpadalq_s16(sums[v], vmlal_s8(product, vget_high_s8(w[v]), second));
    }
  }
};

}  // namespace
}  // namespace litebnn
