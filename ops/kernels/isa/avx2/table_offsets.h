// How AVX2 makes the offsets of the lookup tables (shared/table_offsets.h).
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/isa/avx2/inner_loop.h"
#include "kernels/isa/avx2/lanes.h"
#include "kernels/isa/shared/table_offsets.h"

namespace litebnn {
// Nothing in here may be shared with files compiled for other CPUs.
namespace {

struct OffsetsStep {
  using Offset = uint16_t;
  static constexpr int32_t kWords = 8;

  // Sums of pixel 0 in the low halves of 64 bits, those of pixel 1 in the high ones.
  struct OddSums {
    __m256i sums;

    void Add(OddSums other) { sums = _mm256_add_epi32(sums, other.sums); }
    void Totals(int32_t* totals) const {
      __m128i halves = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
      halves = _mm_add_epi32(halves, _mm_unpackhi_epi64(halves, halves));
      totals[0] = _mm_cvtsi128_si32(halves);
      totals[1] = _mm_extract_epi32(halves, 1);
    }
  };
  static OddSums None() { return {_mm256_setzero_si256()}; }

  static __m256i LowNibbles(__m256i bytes) { return _mm256_and_si256(bytes, _mm256_set1_epi8(0x0F)); }
  static __m256i HighNibbles(__m256i bytes) { return LowNibbles(_mm256_srli_epi16(bytes, 4)); }

  // Counts the odd nibbles of each byte.
  static __m256i OddNibbles(__m256i bytes) {
    const __m256i is_odd = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0));
    return _mm256_add_epi8(_mm256_shuffle_epi8(is_odd, LowNibbles(bytes)),
                           _mm256_shuffle_epi8(is_odd, HighNibbles(bytes)));
  }

  __attribute__((always_inline)) static OddSums Write(const uint8_t* source0, const uint8_t* source1, int32_t words,
                                                      uint16_t* offsets) {
    const __m256i steps = _mm256_set1_epi16(static_cast<int16_t>(kTableStep | 16 * kTableStep << 8));
    const __m256i zero = _mm256_setzero_si256(), pixel0_bytes = _mm256_set1_epi16(0xFF);
    OddSums odd_sums = None();
    for (; words > 0; words -= 4, source0 += 4 * sizeof(uint32_t), source1 += 4 * sizeof(uint32_t)) {
      const __m128i mask = _mm256_castsi256_si128(EightLanes::First(words));
      const __m128i words0 = _mm_maskload_epi32(reinterpret_cast<const int*>(source0), mask);
      const __m128i words1 = _mm_maskload_epi32(reinterpret_cast<const int*>(source1), mask);
      const __m256i bytes =
          _mm256_or_si256(_mm256_cvtepu8_epi16(words0), _mm256_slli_epi16(_mm256_cvtepu8_epi16(words1), 8));
      const __m256i low = _mm256_maddubs_epi16(steps, LowNibbles(bytes));
      const __m256i high = _mm256_maddubs_epi16(steps, HighNibbles(bytes));
      const __m256i even = _mm256_unpacklo_epi64(low, high), odd = _mm256_unpackhi_epi64(low, high);
      auto* vectors = reinterpret_cast<__m256i*>(offsets);
      _mm256_storeu_si256(vectors, _mm256_permute2x128_si256(even, odd, 0x20));
      _mm256_storeu_si256(vectors + 1, _mm256_permute2x128_si256(even, odd, 0x31));
      offsets += 4 * kNibblesPerWord;
      const __m256i odd_nibbles = OddNibbles(bytes);
      const __m256i odd0 = _mm256_sad_epu8(_mm256_and_si256(odd_nibbles, pixel0_bytes), zero);
      const __m256i odd1 = _mm256_sad_epu8(_mm256_srli_epi16(odd_nibbles, 8), zero);
      odd_sums.Add({_mm256_or_si256(odd0, _mm256_slli_epi64(odd1, 32))});
    }
    return odd_sums;
  }

  static void CountOdd(const uint8_t* source, int32_t words, uint8_t* counts) {
    for (; words > 0; words -= kWords, source += sizeof(__m256i), counts += sizeof(__m256i)) {
      const __m256i bytes = _mm256_maskload_epi32(reinterpret_cast<const int*>(source), EightLanes::First(words));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(counts), OddNibbles(bytes));
    }
  }

  static void SumOdd(const uint8_t* counts, ptrdiff_t row_bytes, int32_t rows, int32_t words, int32_t* before) {
    const __m256i ones = _mm256_set1_epi8(1);
    int32_t sum_before = 0;
    for (; words > 0; words -= kWords, counts += sizeof(__m256i)) {
      const auto load = [&](int32_t row) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(counts + row * row_bytes));
      };
      __m256i sum = load(0);
      for (int32_t row = 1; row < rows; ++row) sum = _mm256_add_epi8(sum, load(row));
      alignas(32) int32_t odd[kWords];
      const __m256i of_words = _mm256_madd_epi16(_mm256_maddubs_epi16(sum, ones), _mm256_set1_epi16(1));
      _mm256_store_si256(reinterpret_cast<__m256i*>(odd), of_words);
      for (const int32_t of_word : odd) {
        *before++ = sum_before;
        sum_before += of_word;
      }
    }
    *before = sum_before;
  }
};

}  // namespace
}  // namespace litebnn
