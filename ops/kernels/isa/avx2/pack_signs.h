// Packing of signs by AVX2, for AVX-512 too.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/isa/shared/pack_rows.h"

namespace litebnn {
// Every ISA's file has its own copy, compiled for its own CPU.
namespace {

inline void PackFloat32Signs(const float* input, int64_t rows, int32_t channels, uint32_t* output) {
  // What two rounds of packing within 128 bit lanes have done to the order of 4 bytes each.
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const auto pack_word = [order](const float* values) {
    const auto below_zero = [values](int i) {
      return _mm256_castps_si256(_mm256_cmp_ps(_mm256_loadu_ps(values + 8 * i), _mm256_setzero_ps(), _CMP_LT_OQ));
    };
    const __m256i low = _mm256_packs_epi32(below_zero(0), below_zero(1));
    const __m256i high = _mm256_packs_epi32(below_zero(2), below_zero(3));
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
    return static_cast<uint32_t>(_mm256_movemask_epi8(bytes));
  };
  PackRows(input, rows, channels, output, pack_word, [](float value) { return value < 0.0f; });
}

inline void PackInt8Signs(const int8_t* input, int64_t rows, int32_t channels, int32_t zero_point, uint32_t* output) {
  const __m256i zero_points = _mm256_set1_epi8(static_cast<char>(zero_point));
  const auto pack_word = [zero_points](const int8_t* values) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
    return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpgt_epi8(zero_points, bytes)));
  };
  PackRows(input, rows, channels, output, pack_word, [zero_point](int8_t value) { return value < zero_point; });
}

}  // namespace
}  // namespace litebnn
