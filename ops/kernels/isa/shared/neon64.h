// The file has functions that the 64-bit NEON ISAs share, in addition to those of neon_lanes.h.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "kernels/isa/shared/neon_lanes.h"
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

// Stores two vectors of integers as bytes. All values must fit an int8_t.
template <int kFirst>
__attribute__((always_inline)) inline void StorePair(int8_t* output, int32x4_t low, int32x4_t high) {
  vst1_s8(output + kFirst, vmovn_s16(vcombine_s16(vmovn_s32(low), vmovn_s32(high))));
}

}  // namespace
}  // namespace litebnn
