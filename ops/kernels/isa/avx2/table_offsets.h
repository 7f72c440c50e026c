// The file has the AVX2 operations that compute the offsets of the lookup tables (shared/table_offsets.h).
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/isa/avx2/inner_loop.h"
#include "kernels/isa/avx2/lanes.h"
#include "kernels/isa/shared/table_offsets.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

struct OffsetsTraits {
  using Offset = uint16_t;
  static constexpr int32_t kWords = 8;
  static constexpr bool kWritesShortWindows = true;

  // ParitySums counts nibbles with an odd number of ones. The low half of each 64-bit element belongs to pixel 0, the
  // high half to pixel 1.
  struct ParitySums {
    __m256i sums;

    void Add(ParitySums other) { sums = _mm256_add_epi32(sums, other.sums); }
    void Totals(int32_t* totals) const {
      __m128i halves = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
      halves = _mm_add_epi32(halves, _mm_unpackhi_epi64(halves, halves));
      totals[0] = _mm_cvtsi128_si32(halves);
      totals[1] = _mm_extract_epi32(halves, 1);
    }
  };
  static ParitySums None() { return {_mm256_setzero_si256()}; }

  static __m256i LowNibbles(__m256i bytes) { return _mm256_and_si256(bytes, _mm256_set1_epi8(0x0F)); }
  static __m256i HighNibbles(__m256i bytes) { return LowNibbles(_mm256_srli_epi16(bytes, 4)); }

  // Returns for each byte the number of its nibbles that have odd parity.
  static __m256i NibbleParities(__m256i bytes) {
    const __m256i nibble_parity =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0));
    return _mm256_add_epi8(_mm256_shuffle_epi8(nibble_parity, LowNibbles(bytes)),
                           _mm256_shuffle_epi8(nibble_parity, HighNibbles(bytes)));
  }

  // Writes the table offsets for eight words of each of two pixels.
  __attribute__((always_inline)) static ParitySums WriteWords(__m256i pixel0, __m256i pixel1, uint16_t* offsets) {
    const __m256i low = _mm256_or_si256(LowNibbles(pixel0), _mm256_slli_epi16(LowNibbles(pixel1), 4));
    const __m256i high = _mm256_or_si256(HighNibbles(pixel0), _mm256_slli_epi16(HighNibbles(pixel1), 4));
    const auto store_two_words = [offsets](int32_t word, __m128i tables) {
      static_assert(kTableStride == 1 << 3, "a table's number becomes its offset by a shift");
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(offsets + word * kNibblesPerWord),
                          _mm256_slli_epi16(_mm256_cvtepu8_epi16(tables), 3));
    };
    const __m256i words01 = _mm256_unpacklo_epi32(low, high), words23 = _mm256_unpackhi_epi32(low, high);
    store_two_words(0, _mm256_castsi256_si128(words01));
    store_two_words(2, _mm256_castsi256_si128(words23));
    store_two_words(4, _mm256_extracti128_si256(words01, 1));
    store_two_words(6, _mm256_extracti128_si256(words23, 1));
    const __m256i zero = _mm256_setzero_si256();
    const __m256i parity0 = _mm256_sad_epu8(NibbleParities(pixel0), zero),
                  parity1 = _mm256_sad_epu8(NibbleParities(pixel1), zero);
    return {_mm256_or_si256(parity0, _mm256_slli_epi64(parity1, 32))};
  }

  __attribute__((always_inline)) static ParitySums Write(const uint8_t* source0, const uint8_t* source1, int32_t words,
                                                         uint16_t* offsets) {
    ParitySums parity_sums = None();
    for (; words > 0; words -= kWords, source0 += sizeof(__m256i), source1 += sizeof(__m256i)) {
      const __m256i mask = EightLanes::First(words);
      parity_sums.Add(WriteWords(_mm256_maskload_epi32(reinterpret_cast<const int*>(source0), mask),
                                 _mm256_maskload_epi32(reinterpret_cast<const int*>(source1), mask), offsets));
      offsets += kWords * kNibblesPerWord;
    }
    return parity_sums;
  }

  template <int kWindowWords>
  __attribute__((always_inline)) static void WriteShortWindows(const uint8_t* const* windows, uint16_t* offsets,
                                                               int32_t* parity) {
    constexpr int kWindows = 2 * kWords / kWindowWords;
    // The lambda loads 16 bytes. If windows have four words, they are the words of window `first`. If windows have two
    // words, they are the words of the windows `first` and `first` + 2.
    const auto load_half = [windows](int first) {
      const auto* const words = reinterpret_cast<const __m128i*>(windows[first]);
      if (kWindowWords == 4) return _mm_loadu_si128(words);
      const auto* const next_words = reinterpret_cast<const __m64*>(windows[first + 2]);
      return _mm_castps_si128(_mm_loadh_pi(_mm_castsi128_ps(_mm_loadl_epi64(words)), next_words));
    };
    const auto load = [load_half](int first) {
      return _mm256_inserti128_si256(_mm256_castsi128_si256(load_half(first)), load_half(first + kWindows / 2), 1);
    };
    __m256i counts = WriteWords(load(0), load(1), offsets).sums;
    if (kWindowWords == 4) {
      counts = _mm256_add_epi32(counts, _mm256_shuffle_epi32(counts, _MM_SHUFFLE(1, 0, 3, 2)));
      counts = _mm256_permute4x64_epi64(counts, _MM_SHUFFLE(3, 1, 2, 0));
    }
    const __m256i twice = _mm256_slli_epi32(counts, 1);
    const __m256i in_halves = _mm256_or_si256(twice, _mm256_slli_epi32(twice, 16));
    kWindowWords == 4 ? _mm_store_si128(reinterpret_cast<__m128i*>(parity), _mm256_castsi256_si128(in_halves))
                      : _mm256_store_si256(reinterpret_cast<__m256i*>(parity), in_halves);
  }

  static void CountParity(const uint8_t* source, int32_t words, uint8_t* counts) {
    for (; words > 0; words -= kWords, source += sizeof(__m256i), counts += sizeof(__m256i)) {
      const __m256i bytes = _mm256_maskload_epi32(reinterpret_cast<const int*>(source), EightLanes::First(words));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(counts), NibbleParities(bytes));
    }
  }

  static void SumParity(const uint8_t* counts, ptrdiff_t row_bytes, int32_t rows, int32_t words, int32_t* before) {
    const __m256i ones = _mm256_set1_epi8(1);
    int32_t sum_before = 0;
    for (; words > 0; words -= kWords, counts += sizeof(__m256i)) {
      const auto load = [&](int32_t row) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(counts + row * row_bytes));
      };
      __m256i sum = load(0);
      for (int32_t row = 1; row < rows; ++row) sum = _mm256_add_epi8(sum, load(row));
      alignas(32) int32_t parity[kWords];
      const __m256i word_sums = _mm256_madd_epi16(_mm256_maddubs_epi16(sum, ones), _mm256_set1_epi16(1));
      _mm256_store_si256(reinterpret_cast<__m256i*>(parity), word_sums);
      for (const int32_t word_sum : parity) {
        *before++ = sum_before;
        sum_before += word_sum;
      }
    }
    *before = sum_before;
  }
};

}  // namespace
}  // namespace litebnn
