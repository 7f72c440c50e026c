// The file has the versions of the vector operations of lanes.h for all NEON ISAs.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

struct FourLanes {
  using Floats = float32x4_t;
  using Ints = int32x4_t;
  using Bits = uint32x4_t;
  static constexpr int32_t kLanes = 4;

  static Floats Set(float value) { return vdupq_n_f32(value); }
  static Ints Set(int32_t value) { return vdupq_n_s32(value); }
  static Floats Load(const float* values) { return vld1q_f32(values); }
  static Ints Load(const int32_t* values) { return vld1q_s32(values); }
  static void Store(Floats values, float* output) { vst1q_f32(output, values); }
  static Floats LoadFirst(const float* values, int32_t count) {
    if (count == kLanes) return Load(values);
    float all[kLanes] = {};
    for (int32_t i = 0; i < count; ++i) all[i] = values[i];
    return Load(all);
  }
  static void StoreFirst(Floats values, float* output, int32_t count) {
    if (count == kLanes) return Store(values, output);
    float all[kLanes];
    Store(values, all);
    for (int32_t i = 0; i < count; ++i) output[i] = all[i];
  }
  static void StoreFirst(Ints values, int8_t* output, int32_t count) {
    const int16x4_t words = vmovn_s32(values);
    const int8x8_t bytes = vmovn_s16(vcombine_s16(words, words));
    const int32_t four = vget_lane_s32(vreinterpret_s32_s8(bytes), 0);
    std::memcpy(output, &four, static_cast<size_t>(count));
  }
  static Ints LoadBytes(const int8_t* values, int32_t count) {
    int32_t four = 0;
    std::memcpy(&four, values, static_cast<size_t>(count));
    return vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four)))));
  }
  static Ints LoadSums(const uint16_t* sums) { return vreinterpretq_s32_u32(vmovl_u16(vld1_u16(sums))); }
  static Ints LoadSums(const int32_t* sums) { return Load(sums); }
  static Ints Dots(Ints depth, const uint16_t* sums) {
    return vsubq_s32(depth, vreinterpretq_s32_u32(vshll_n_u16(vld1_u16(sums), 1)));
  }
  static Ints Dots(Ints depth, const int32_t* sums) { return vsubq_s32(depth, vshlq_n_s32(LoadSums(sums), 1)); }

  static Floats Add(Floats a, Floats b) { return vaddq_f32(a, b); }
  static Floats Multiply(Floats a, Floats b) { return vmulq_f32(a, b); }
  static Floats Larger(Floats a, Floats b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
  static Floats Prelu(Floats values, Floats slopes) {
    return vbslq_f32(IsBelowZero(values), vmulq_f32(values, slopes), values);
  }
#if defined(__aarch64__)
  // If one operand is NaN, the instructions FMAXNM and FMINNM return the other operand.
  static Floats Rectify(Floats values) { return vmaxnmq_f32(values, vdupq_n_f32(0.0f)); }
  static Floats Clamp(Floats values, Floats low, Floats high) { return vminnmq_f32(vmaxnmq_f32(values, low), high); }
  static Ints Round(Floats values) { return vcvtaq_s32_f32(values); }
  static Bits IsBelowZero(Floats values) { return vcltzq_f32(values); }
  static uint8x16_t AddPairs(uint8x16_t a, uint8x16_t b) { return vpaddq_u8(a, b); }
#else
  // Floats are compared with zero by integer operations, because GCC does not vectorize comparisons of floats with
  // zero.
  static Floats Rectify(Floats values) {
    const Ints bits = vreinterpretq_s32_f32(values);
    const uint32x4_t is_positive = vandq_u32(vcgtq_s32(bits, Set(0)), vcleq_s32(bits, Set(0x7F800000)));
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(values), is_positive));
  }
  static Floats Clamp(Floats values, Floats low, Floats high) { return vminq_f32(Larger(values, low), high); }
  static Ints Round(Floats values) {
    const Floats half = vbslq_f32(vdupq_n_u32(0x80000000u), values, vdupq_n_f32(0x1.fffffep-2f));
    return vcvtq_s32_f32(vaddq_f32(values, half));
  }
  // Floats are compared with zero by integer operations, because 32-bit NEON flushes subnormals to zero. The bits of
  // negative floats range from 0x80000001, which follows -0.0, to 0xFF800000, which precedes the NaNs.
  static Bits IsBelowZero(Floats values) {
    const uint32x4_t from_first = vaddq_u32(vreinterpretq_u32_f32(values), vdupq_n_u32(0x7FFFFFFFu));
    return vcltq_u32(from_first, vdupq_n_u32(0x7F800000u));
  }
  static uint8x16_t AddPairs(uint8x16_t a, uint8x16_t b) {
    return vcombine_u8(vpadd_u8(vget_low_u8(a), vget_high_u8(a)), vpadd_u8(vget_low_u8(b), vget_high_u8(b)));
  }
#endif

  static Ints Add(Ints a, Ints b) { return vaddq_s32(a, b); }
  static Ints Subtract(Ints a, Ints b) { return vsubq_s32(a, b); }
  static Ints AddIfEqual(Ints values, Ints difference, Ints a, Ints b, Ints c, Ints d) {
    const uint32x4_t are_equal = vandq_u32(vceqq_s32(a, b), vceqq_s32(c, d));
    return vaddq_s32(values, vandq_s32(vreinterpretq_s32_u32(are_equal), difference));
  }
  static Ints Half(Ints values) { return vshrq_n_s32(values, 1); }
  static Ints Clamp(Ints values, Ints low, Ints high) { return vminq_s32(vmaxq_s32(values, low), high); }
  static Floats ToFloats(Ints values) { return vcvtq_f32_s32(values); }
  // The result bits that Append collects in one lane are four bits apart, so that ToWord can merge the bits of the four
  // lanes.
  static Bits Append(Bits bits, uint32x4_t is_set) { return vsliq_n_u32(is_set, bits, kLanes); }
  static Bits AppendAbove(Bits bits, Ints a, Ints b) { return Append(bits, vcgtq_s32(a, b)); }
  static Bits AppendBelowZero(Bits bits, Floats values) { return Append(bits, IsBelowZero(values)); }
  static Bits OwnBits(Bits bits) {
    constexpr uint32_t kLaneBits[kLanes] = {0x11111111, 0x22222222, 0x44444444, 0x88888888};
    return vandq_u32(bits, vld1q_u32(kLaneBits));
  }
  static uint32_t ToWord(Bits bits) {
    const uint32x4_t lanes = OwnBits(bits);
    const uint32x2_t pairs = vorr_u32(vget_low_u32(lanes), vget_high_u32(lanes));
    return vget_lane_u32(vpadd_u32(pairs, pairs), 0);
  }

  static Bits LanesBelowZero(const float* values) {
    Bits bits = IsBelowZero(Load(values + 28));
#pragma GCC unroll 8
    for (int i = 24; i >= 0; i -= kLanes) bits = Append(bits, IsBelowZero(Load(values + i)));
    return bits;
  }
  static uint32_t BitsBelowZero(const float* values) { return ToWord(LanesBelowZero(values)); }
  static uint32_t BitsBelow(const int8_t* values, int8x16_t first_limits, int8x16_t last_limits) {
    constexpr uint8_t kBits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t bits = vld1q_u8(kBits);
    const uint8x16_t first = vandq_u8(vcltq_s8(vld1q_s8(values), first_limits), bits);
    const uint8x16_t last = vandq_u8(vcltq_s8(vld1q_s8(values + 16), last_limits), bits);
    const uint8x16_t pairs = AddPairs(first, last), fours = AddPairs(pairs, pairs);
    return vgetq_lane_u32(vreinterpretq_u32_u8(AddPairs(fours, fours)), 0);
  }
  static uint32_t BitsBelow(const int8_t* values, int8_t limit) {
    return BitsBelow(values, vdupq_n_s8(limit), vdupq_n_s8(limit));
  }
  static uint32_t BitsBelow(const int8_t* values, const int8_t* limits) {
    return BitsBelow(values, vld1q_s8(limits), vld1q_s8(limits + 16));
  }
};

}  // namespace
}  // namespace litebnn
