// The file has functions and classes that the 64-bit NEON ISAs share, in addition to those of neon_lanes.h.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "kernels/isa/shared/neon_lanes.h"
#include "kernels/isa/shared/output.h"
#include "kernels/isa/shared/pack_signs.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

// Packs the signs of floats. If rows need no padding, four words are packed at a time, which saves most of the
// additions across lanes.
void PackFloat32SignsByFours(const float* input, int64_t rows, int32_t channels, uint32_t* output) {
  if (channels % kBitsPerWord != 0) return PackFloat32Signs<FourLanes>(input, rows, channels, output);
  int64_t words = rows * (channels / kBitsPerWord);
  const auto lanes = [&input](int word) {
    uint32x4_t bits = FourLanes::LanesBelowZero(input + word * kBitsPerWord);
    // The barrier makes the compiler compute one word after the other. Without the barrier, the compiler would run out
    // of registers.
    __asm__ volatile("" : "+w"(bits));
    return FourLanes::OwnBits(bits);
  };
  for (; words >= 4; words -= 4, input += 4 * kBitsPerWord, output += 4) {
    const uint32x4_t low = vpaddq_u32(lanes(0), lanes(1)), high = vpaddq_u32(lanes(2), lanes(3));
    vst1q_u32(output, vpaddq_u32(low, high));
  }
  PackFloat32Signs<FourLanes>(input, words, kBitsPerWord, output);
}

// LoadPair and StorePair access two adjacent vectors by one instruction, at an offset of kFirst floats. Without these
// functions, the compiler would use two instructions if other loads and stores are in between.
template <int kFirst>
__attribute__((always_inline)) inline void LoadPair(const float* constants, float32x4_t& low, float32x4_t& high) {
  __asm__ volatile("ldp %q0, %q1, [%2, %3]" : "=w"(low), "=w"(high) : "r"(constants), "i"(kFirst * sizeof(float)));
}
template <int kFirst>
__attribute__((always_inline)) inline void StorePair(float* output, float32x4_t low, float32x4_t high) {
  __asm__ volatile("stp %q0, %q1, [%2, %3]"
                   :
                   : "w"(low), "w"(high), "r"(output), "i"(kFirst * sizeof(float))
                   : "memory");
}

// The class has the operations that follow a convolution with int8 outputs (its epilogue), for eight channels of a
// pixel at a time. If kAdds is true, a FloatSum (kernels.h) adds an int8 tensor. It must not list exceptions, which are
// pairs of operands whose float sum is wrong. Under this condition, the results equal those of Int8Epilogue
// (shared/output.h). The convolution's levels stay floats after rounding, because FloatSum multiplies floats.
template <bool kAdds>
struct LevelPairs {
  using Value = int8_t;
  const float32x4_t low, high, first_scale, second_scale;
  const int8x8_t second_zero_point, least, most;
  const int16x8_t zero_point;
  const int8_t* const addend;

  explicit LevelPairs(const BconvTask& task) : LevelPairs(task, task.epilogue.int8_sum) {}
  LevelPairs(const BconvTask& task, const FloatSum& sum)
      : low(vdupq_n_f32(static_cast<float>(-128 - task.zero_point))),
        high(vdupq_n_f32(static_cast<float>(127 - task.zero_point))),
        first_scale(vdupq_n_f32(sum.first_scale)),
        second_scale(vdupq_n_f32(sum.second_scale)),
        second_zero_point(vdup_n_s8(static_cast<int8_t>(sum.second_zero_point))),
        least(vdup_n_s8(static_cast<int8_t>(sum.low + sum.zero_point))),
        most(vdup_n_s8(static_cast<int8_t>(sum.high + sum.zero_point))),
        zero_point(vdupq_n_s16(static_cast<int16_t>(kAdds ? sum.zero_point : task.zero_point))),
        addend(task.epilogue.int8_addend) {}

  // Returns the outputs of eight channels. `index` is the position of the first one in the output and in the addend.
  __attribute__((always_inline)) int8x8_t operator()(float32x4_t first, float32x4_t last, ptrdiff_t index) const {
    float32x4_t values[2] = {FourLanes::Clamp(first, low, high), FourLanes::Clamp(last, low, high)};
    if constexpr (kAdds) {
      const int16x8_t second = vsubl_s8(vld1_s8(addend + index), second_zero_point);
      const int32x4_t seconds[2] = {vmovl_s16(vget_low_s16(second)), vmovl_high_s16(second)};
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        const float32x4_t product = vmulq_f32(vrndaq_f32(values[i]), first_scale);
        values[i] = vaddq_f32(product, vmulq_f32(vcvtq_f32_s32(seconds[i]), second_scale));
      }
    }
    // All rounded values fit 16 bits, because a FloatSum (an int8 addition in floats) has limited scales. Therefore the
    // upper halves can be dropped.
    const int16x8_t levels = vuzp1q_s16(vreinterpretq_s16_s32(FourLanes::Round(values[0])),
                                        vreinterpretq_s16_s32(FourLanes::Round(values[1])));
    const int8x8_t bytes = vqmovn_s16(vaddq_s16(levels, zero_point));
    return kAdds ? vmin_s8(vmax_s8(bytes, least), most) : bytes;
  }

  // The constants of this int8 epilogue do not depend on the channel, so the epilogue of any channel only points to
  // them.
  struct Channels {
    const LevelPairs* levels;
  };
  Channels operator()(int32_t /*channel*/) const { return {this}; }
};

// Applies the epilogue (the operations after the convolution) to two adjacent vectors of channels. The results are
// stored in `pixel` at an offset of kFirst values. `index` is the position of the first result in the whole output.
template <int kFirst, typename Channels>
__attribute__((always_inline)) inline void StoreOutputs(const Channels& low_epilogue, const Channels& high_epilogue,
                                                        float32x4_t low, float32x4_t high, float* pixel,
                                                        ptrdiff_t index) {
  StorePair<kFirst>(pixel, low_epilogue(low, index), high_epilogue(high, index + 4));
}
template <int kFirst, typename Channels>
__attribute__((always_inline)) inline void StoreOutputs(const Channels& epilogue, const Channels&, float32x4_t low,
                                                        float32x4_t high, int8_t* pixel, ptrdiff_t index) {
  vst1_s8(pixel + kFirst, (*epilogue.levels)(low, high, index));
}

// Calls body(epilogue) with the task's epilogue for StoreOutputs. The task must not write packed bits (kBits). If the
// task adds an int8 tensor, its float sum must not have exceptions, the pairs of operands for which it needs a
// correction.
template <typename Body>
__attribute__((always_inline)) inline void WithPairEpilogue(const BconvTask& task, Body body) {
  if (task.epilogue_kind == EpilogueKind::kInt8) return body(LevelPairs<false>(task));
  if (task.epilogue_kind == EpilogueKind::kInt8Add) return body(LevelPairs<true>(task));
  WithFloatEpilogue<FourLanes>(task, body);
}

}  // namespace
}  // namespace litebnn
