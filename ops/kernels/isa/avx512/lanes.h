// The file has AVX-512's versions of the vector operations that shared/lanes.h requires.
#pragma once

#include <cstdint>

#include "kernels/isa/avx2/intrinsics.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

struct SixteenLanes {
  using Floats = __m512;
  using Ints = __m512i;
  using Bits = uint32_t;
  static constexpr int32_t kLanes = 16;

  static Floats Set(float value) { return _mm512_set1_ps(value); }
  static Ints Set(int32_t value) { return _mm512_set1_epi32(value); }
  static Floats Load(const float* values) { return _mm512_loadu_ps(values); }
  static Ints Load(const int32_t* values) { return _mm512_loadu_si512(values); }
  static void Store(Floats values, float* output) { _mm512_storeu_ps(output, values); }
  static __mmask16 First(int32_t count) { return static_cast<__mmask16>((1u << count) - 1); }
  static Floats LoadFirst(const float* values, int32_t count) {
    return count == kLanes ? Load(values) : _mm512_maskz_loadu_ps(First(count), values);
  }
  static void StoreFirst(Floats values, float* output, int32_t count) {
    count == kLanes ? Store(values, output) : _mm512_mask_storeu_ps(output, First(count), values);
  }
  static void StoreFirst(Ints values, int8_t* output, int32_t count) {
    // A full vector is stored without a mask, because masked stores are slow on AMD's CPUs.
    const __m128i bytes = _mm512_cvtepi32_epi8(values);
    count == kLanes ? _mm_storeu_si128(reinterpret_cast<__m128i*>(output), bytes)
                    : _mm_mask_storeu_epi8(output, First(count), bytes);
  }
  static Ints LoadBytes(const int8_t* values, int32_t count) {
    const auto* const bytes = reinterpret_cast<const __m128i*>(values);
    return _mm512_cvtepi8_epi32(count == kLanes ? _mm_loadu_si128(bytes) : _mm_maskz_loadu_epi8(First(count), values));
  }
  static Ints LoadSums(const int32_t* sums) { return _mm512_load_si512(sums); }
  static Ints Dots(Ints depth, const int32_t* sums) {
    return _mm512_sub_epi32(depth, _mm512_slli_epi32(LoadSums(sums), 1));
  }

  static Floats Add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Floats Multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats Larger(Floats a, Floats b) { return _mm512_max_ps(a, b); }
  static Floats Prelu(Floats values, Floats slopes) {
    return _mm512_mask_mul_ps(values, _mm512_cmp_ps_mask(values, _mm512_setzero_ps(), _CMP_LT_OQ), values, slopes);
  }
  static Floats Rectify(Floats values) { return _mm512_max_ps(values, _mm512_setzero_ps()); }
  static Floats Clamp(Floats values, Floats low, Floats high) {
    return _mm512_min_ps(_mm512_max_ps(values, low), high);
  }
  // Adds the largest float below one half, with the sign of each value, to the values.
  static Floats AddHalf(Floats values) {
    const Floats sign = _mm512_and_ps(values, Set(-0.0f));
    return Add(values, _mm512_or_ps(sign, Set(0x1.fffffep-2f)));
  }
  static Ints ToInts(Floats values) { return _mm512_cvttps_epi32(values); }
  static Ints Round(Floats values) { return ToInts(AddHalf(values)); }

  static Ints Add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  static Ints Subtract(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
  static Ints AddIfEqual(Ints values, Ints difference, Ints a, Ints b, Ints c, Ints d) {
    return _mm512_mask_add_epi32(values, _mm512_mask_cmpeq_epi32_mask(_mm512_cmpeq_epi32_mask(a, b), c, d), values,
                                 difference);
  }
  static Ints Half(Ints values) { return _mm512_srai_epi32(values, 1); }
  static Ints Clamp(Ints values, Ints low, Ints high) { return _mm512_min_epi32(_mm512_max_epi32(values, low), high); }
  static Floats ToFloats(Ints values) { return _mm512_cvtepi32_ps(values); }
  static Bits AppendAbove(Bits bits, Ints a, Ints b) { return bits << kLanes | _mm512_cmpgt_epi32_mask(a, b); }
  static Bits AppendBelowZero(Bits bits, Floats values) {
    return bits << kLanes | _mm512_cmp_ps_mask(values, _mm512_setzero_ps(), _CMP_LT_OQ);
  }
  static uint32_t ToWord(Bits bits) { return bits; }
};

}  // namespace
}  // namespace litebnn
