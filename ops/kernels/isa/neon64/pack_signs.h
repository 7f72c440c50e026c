// Packing of signs by 64-bit NEON.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "kernels/isa/shared/neon_lanes.h"
#include "kernels/isa/shared/pack_rows.h"

namespace litebnn {
// Every ISA's file has its own copy, compiled for its own CPU.
namespace {

inline void PackFloat32Signs(const float* input, int64_t rows, int32_t channels, uint32_t* output) {
  // The lanes' bits of 32 values.
  const auto bits_of = [](const float* values) {
    uint32x4_t bits = vcltzq_f32(vld1q_f32(values + 28));
#pragma GCC unroll 8
    for (int i = 24; i >= 0; i -= 4) bits = FourLanes::Append(bits, vcltzq_f32(vld1q_f32(values + i)));
    // One word after the other: the compiler would run out of registers.
    __asm__ volatile("" : "+w"(bits));
    return FourLanes::OwnBits(bits);
  };
  if (channels % kBitsPerWord == 0) {
    // Rows make no difference, and four words at a time spare most of the sums across lanes.
    int64_t words = rows * (channels / kBitsPerWord);
    for (; words >= 4; words -= 4, input += 4 * kBitsPerWord, output += 4) {
      const uint32x4_t low = vpaddq_u32(bits_of(input), bits_of(input + kBitsPerWord));
      const uint32x4_t high = vpaddq_u32(bits_of(input + 2 * kBitsPerWord), bits_of(input + 3 * kBitsPerWord));
      vst1q_u32(output, vpaddq_u32(low, high));
    }
    rows = words;
    channels = kBitsPerWord;
  }
  const auto pack_word = [bits_of](const float* values) { return vaddvq_u32(bits_of(values)); };
  PackRows(input, rows, channels, output, pack_word, [](float value) { return value < 0.0f; });
}

inline void PackInt8Signs(const int8_t* input, int64_t rows, int32_t channels, int32_t zero_point, uint32_t* output) {
  constexpr uint8_t kBits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const uint8x16_t bits = vld1q_u8(kBits);
  const int8x16_t zero_points = vdupq_n_s8(static_cast<int8_t>(zero_point));
  const auto pack_word = [=](const int8_t* values) {
    const uint8x16_t low = vandq_u8(vcltq_s8(vld1q_s8(values), zero_points), bits);
    const uint8x16_t high = vandq_u8(vcltq_s8(vld1q_s8(values + 16), zero_points), bits);
    const uint8x16_t pairs = vpaddq_u8(low, high);
    const uint8x16_t fours = vpaddq_u8(pairs, pairs);
    return vgetq_lane_u32(vreinterpretq_u32_u8(vpaddq_u8(fours, fours)), 0);
  };
  PackRows(input, rows, channels, output, pack_word, [zero_point](int8_t value) { return value < zero_point; });
}

}  // namespace
}  // namespace litebnn
