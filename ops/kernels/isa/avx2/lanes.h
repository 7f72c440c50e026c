// The file has AVX2's versions of the vector operations that shared/lanes.h requires.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/isa/avx2/intrinsics.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

struct EightLanes {
  using Floats = __m256;
  using Ints = __m256i;
  using Bits = uint32_t;
  static constexpr int32_t kLanes = 8;

  static Floats Set(float value) { return _mm256_set1_ps(value); }
  static Ints Set(int32_t value) { return _mm256_set1_epi32(value); }
  static Floats Load(const float* values) { return _mm256_loadu_ps(values); }
  static Ints Load(const int32_t* values) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values)); }
  static void Store(Floats values, float* output) { _mm256_storeu_ps(output, values); }
  static Ints First(int32_t count) { return _mm256_cmpgt_epi32(Set(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)); }
  static Floats LoadFirst(const float* values, int32_t count) {
    return count == kLanes ? Load(values) : _mm256_maskload_ps(values, First(count));
  }
  static void StoreFirst(Floats values, float* output, int32_t count) {
    count == kLanes ? Store(values, output) : _mm256_maskstore_ps(output, First(count), values);
  }
  static void StoreFirst(Ints values, int8_t* output, int32_t count) {
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1));
    const __m128i bytes = _mm_packs_epi16(words, words);
    if (count == kLanes) return _mm_storel_epi64(reinterpret_cast<__m128i*>(output), bytes);
    std::memcpy(output, &bytes, static_cast<size_t>(count));
  }
  static Ints LoadBytes(const int8_t* values, int32_t count) {
    if (count == kLanes) return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(values)));
    int64_t bytes = 0;
    std::memcpy(&bytes, values, static_cast<size_t>(count));
    return _mm256_cvtepi8_epi32(_mm_cvtsi64_si128(bytes));
  }
  static Ints LoadSums(const uint16_t* sums) {
    return _mm256_cvtepu16_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(sums)));
  }
  static Ints LoadSums(const int32_t* sums) { return Load(sums); }
  static Ints Dots(Ints depth, const int32_t* sums) {
    return _mm256_sub_epi32(depth, _mm256_slli_epi32(LoadSums(sums), 1));
  }
  static Ints Dots(Ints depth, const uint16_t* sums) {
    return _mm256_sub_epi32(depth, _mm256_slli_epi32(LoadSums(sums), 1));
  }

  static Floats Add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  static Floats Multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static Floats Larger(Floats a, Floats b) { return _mm256_max_ps(a, b); }
  static Floats Prelu(Floats values, Floats slopes) {
    const Floats is_below = _mm256_cmp_ps(values, _mm256_setzero_ps(), _CMP_LT_OQ);
    return _mm256_blendv_ps(values, Multiply(values, slopes), is_below);
  }
  static Floats Rectify(Floats values) { return _mm256_max_ps(values, _mm256_setzero_ps()); }
  static Floats Clamp(Floats values, Floats low, Floats high) {
    return _mm256_min_ps(_mm256_max_ps(values, low), high);
  }
  // Adds the largest float below one half, with the sign of each value, to the values.
  static Floats AddHalf(Floats values) {
    const Floats sign = _mm256_and_ps(values, Set(-0.0f));
    return Add(values, _mm256_or_ps(sign, Set(0x1.fffffep-2f)));
  }
  static Ints ToInts(Floats values) { return _mm256_cvttps_epi32(values); }
  static Ints Round(Floats values) { return ToInts(AddHalf(values)); }

  static Ints Add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
  static Ints Subtract(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
  static Ints AddIfEqual(Ints values, Ints difference, Ints a, Ints b, Ints c, Ints d) {
    const Ints are_equal = _mm256_and_si256(_mm256_cmpeq_epi32(a, b), _mm256_cmpeq_epi32(c, d));
    return _mm256_add_epi32(values, _mm256_and_si256(are_equal, difference));
  }
  static Ints Half(Ints values) { return _mm256_srai_epi32(values, 1); }
  static Ints Clamp(Ints values, Ints low, Ints high) { return _mm256_min_epi32(_mm256_max_epi32(values, low), high); }
  static Floats ToFloats(Ints values) { return _mm256_cvtepi32_ps(values); }
  static Bits AppendAbove(Bits bits, Ints a, Ints b) {
    const int above = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b)));
    return bits << kLanes | static_cast<uint32_t>(above);
  }
  static Bits AppendBelowZero(Bits bits, Floats values) {
    const int below = _mm256_movemask_ps(_mm256_cmp_ps(values, _mm256_setzero_ps(), _CMP_LT_OQ));
    return bits << kLanes | static_cast<uint32_t>(below);
  }
  static uint32_t ToWord(Bits bits) { return bits; }

  static uint32_t BitsBelowZero(const float* values) {
    const auto below = [values](int i) {
      return _mm256_castps_si256(_mm256_cmp_ps(Load(values + i), _mm256_setzero_ps(), _CMP_LT_OQ));
    };
    const Ints low = _mm256_packs_epi32(below(0), below(8)), high = _mm256_packs_epi32(below(16), below(24));
    // Restores the order of 4-byte groups, which two rounds of packing within 128-bit lanes changed.
    const Ints order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const Ints bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
    return static_cast<uint32_t>(_mm256_movemask_epi8(bytes));
  }
  static Ints LoadAllBytes(const int8_t* values) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
  }
  static uint32_t BitsBelow(const int8_t* values, Ints limits) {
    return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpgt_epi8(limits, LoadAllBytes(values))));
  }
  static uint32_t BitsBelow(const int8_t* values, int8_t limit) { return BitsBelow(values, _mm256_set1_epi8(limit)); }
  static uint32_t BitsBelow(const int8_t* values, const int8_t* limits) {
    return BitsBelow(values, LoadAllBytes(limits));
  }
};

}  // namespace
}  // namespace litebnn
