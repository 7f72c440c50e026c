// The parts of int8 convolutions that AVX2 and AVX-VNNI have in common: everything but the multiplications by weights.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/isa/avx2/intrinsics.h"
#include "kernels/isa/shared/int8/conv.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

struct EightDots {
  using Ints = __m256i;
  using Weights = __m256i;
  static constexpr int32_t kLanes = 8;
  static constexpr bool kIsExact = false;

  // A Check records the largest distance between a scaled float sum and the integer to which the sum was rounded. The
  // distance shows if the rounding is certain in spite of float errors.
  struct Check {
    __m256 farthest = _mm256_setzero_ps();
    // The rounding is uncertain if a sum is nearly halfway between two integers. The error of a float below 256 is less
    // than 2^-14, and larger sums are clamped.
    bool IsUnsure() const {
      return _mm256_movemask_ps(_mm256_cmp_ps(farthest, _mm256_set1_ps(0.5f - 0x1p-14f), _CMP_GT_OQ)) != 0;
    }
  };

  static Ints Load(const int32_t* values) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(values)); }
  static Weights LoadWeights(const uint8_t* weights) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(weights));
  }
  static Ints LoadStep(const uint8_t* bytes) {
    int32_t step;
    std::memcpy(&step, bytes, sizeof(step));
    return _mm256_set1_epi32(step);
  }

  __attribute__((always_inline)) static Ints Round(Ints sums, const Int8ConvTask& task, int32_t channel, Check& check) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    const __m256 product = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), _mm256_load_ps(task.float_multiplier + channel));
    const __m256 nudge = _mm256_or_ps(_mm256_and_ps(product, sign), _mm256_load_ps(task.nudge + channel));
    const __m256 scaled = _mm256_add_ps(product, nudge);
    const __m256 rounded = _mm256_round_ps(scaled, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    check.farthest = _mm256_max_ps(check.farthest, _mm256_andnot_ps(sign, _mm256_sub_ps(scaled, rounded)));
    return _mm256_cvtps_epi32(rounded);
  }

  static Ints RoundExactly(Ints sums, const int32_t* multipliers, const int32_t* shifts) {
    const Ints multiplier = Load(multipliers), shift = Load(shifts), half = _mm256_set1_epi64x(1 << 30);
    const Ints even = _mm256_add_epi64(_mm256_mul_epi32(sums, multiplier), half);
    const Ints odd =
        _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(sums, 32), _mm256_srli_epi64(multiplier, 32)), half);
    const Ints high = _mm256_blend_epi32(_mm256_srli_epi64(even, 31), _mm256_slli_epi64(odd, 1), 0xAA);
    // `shifted_half` is 0 if the shift is 0, because a shift of 0 has no second rounding.
    const Ints shifted_half = _mm256_srli_epi32(_mm256_sllv_epi32(_mm256_set1_epi32(1), shift), 1);
    const Ints sign = _mm256_srai_epi32(_mm256_and_si256(high, _mm256_sub_epi32(_mm256_setzero_si256(), shift)), 31);
    return _mm256_srav_epi32(_mm256_add_epi32(_mm256_add_epi32(high, sign), shifted_half), shift);
  }

  template <int kVectors>
  __attribute__((always_inline)) static void Store(const Ints (&values)[kVectors], const Int8ConvTask& task,
                                                   int8_t* output, int32_t channels) {
    const Ints zero_point = _mm256_set1_epi16(static_cast<int16_t>(task.zero_point));
    const __m128i low = _mm_set1_epi8(static_cast<int8_t>(task.output_min));
    const __m128i high = _mm_set1_epi8(static_cast<int8_t>(task.output_max));
    constexpr int kLast = kVectors - 1;
    for (int v = 0; v < kVectors; v += 2, output += 2 * kLanes, channels -= 2 * kLanes) {
      const Ints second = values[Min(v + 1, kLast)];
      const Ints words = _mm256_adds_epi16(_mm256_packs_epi32(values[v], second), zero_point);
      // Restores the order of 4-byte groups, which packing within 128-bit lanes changed.
      const Ints ordered =
          _mm256_permutevar8x32_epi32(_mm256_packs_epi16(words, words), _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5));
      const __m128i bytes = _mm_min_epi8(_mm_max_epi8(_mm256_castsi256_si128(ordered), low), high);
      if (channels >= 2 * kLanes) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(output), bytes);
      } else if (channels == kLanes) {
        _mm_storel_epi64(reinterpret_cast<__m128i*>(output), bytes);
      } else {
        std::memcpy(output, &bytes, static_cast<size_t>(channels));
      }
    }
  }
};

}  // namespace
}  // namespace litebnn
