// Int8 convolutions with AVX-512 and VNNI, which multiplies unsigned by signed bytes.
#include "kernels/platform/x86_cpu.h"

#if LITEBNN_X86

#include <algorithm>

#include "kernels/isa/avx2/intrinsics.h"
#include "kernels/isa/avx512/levels.h"
#include "kernels/isa/isa.h"
#include "kernels/isa/shared/int8/conv.h"

namespace litebnn {
namespace {

struct Dots {
  using Ints = __m512i;
  using Weights = __m512i;
  static constexpr int32_t kLanes = 16;
  static constexpr bool kIsExact = false;

  // A Check records the largest distance between a scaled float sum and the integer to which the sum was rounded. The
  // distance shows if the rounding is certain in spite of float errors.
  struct Check {
    __m512 farthest = _mm512_setzero_ps();
    // The rounding is uncertain if a sum is nearly halfway between two integers. The error of a float below 256 is less
    // than 2^-15, and larger sums are clamped.
    bool IsUnsure() const { return _mm512_cmp_ps_mask(farthest, _mm512_set1_ps(0.5f - 0x1p-15f), _CMP_GT_OQ) != 0; }
  };

  static Ints Load(const int32_t* values) { return _mm512_load_si512(values); }
  static Weights LoadWeights(const uint8_t* weights) { return _mm512_load_si512(weights); }
  static Ints LoadStep(const uint8_t* bytes) {
    int32_t step;
    std::memcpy(&step, bytes, sizeof(step));
    return _mm512_set1_epi32(step);
  }
  // The function is one instruction, written as inline assembly. With the intrinsic for this instruction, GCC would
  // copy the sums before and after each use.
  static void Add(Ints& sums, Ints step, Weights weights) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(step), "v"(weights));
  }

  template <int kPixels, int kVectors>
  __attribute__((always_inline)) static void AddWindows(const Int8ConvTask& task, const uint8_t* window,
                                                        const uint8_t* weights, Ints (&sums)[kPixels][kVectors]) {
    AddSteps<Dots>(task, window, weights, sums);
  }

  __attribute__((always_inline)) static Ints Round(Ints sums, const Int8ConvTask& task, int32_t channel, Check& check) {
    constexpr int kSignOrNudge = 0xEA;  // (a & b) | c
    const __m512 multiplier = _mm512_load_ps(task.float_multiplier + channel);
    const __m512i nudge = _mm512_load_si512(task.nudge + channel);
    const __m512i signed_nudge = _mm512_ternarylogic_epi32(sums, _mm512_set1_epi32(INT32_MIN), nudge, kSignOrNudge);
    const __m512 scaled = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), multiplier, _mm512_castsi512_ps(signed_nudge));
    const __m512 rounded = _mm512_roundscale_ps(scaled, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    constexpr int kLargerMagnitude = 0b1011;
    check.farthest = _mm512_range_ps(check.farthest, _mm512_sub_ps(scaled, rounded), kLargerMagnitude);
    return _mm512_cvtps_epi32(rounded);
  }

  static Ints RoundExactly(Ints sums, const int32_t* multipliers, const int32_t* shifts) {
    const Ints multiplier = Load(multipliers), shift = Load(shifts), half = _mm512_set1_epi64(1 << 30);
    const Ints even = _mm512_add_epi64(_mm512_mul_epi32(sums, multiplier), half);
    const Ints odd =
        _mm512_add_epi64(_mm512_mul_epi32(_mm512_srli_epi64(sums, 32), _mm512_srli_epi64(multiplier, 32)), half);
    const Ints high = _mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 31), _mm512_slli_epi64(odd, 1));
    // `shifted_half` is 0 if the shift is 0, because a shift of 0 has no second rounding.
    const Ints shifted_half = _mm512_srli_epi32(_mm512_sllv_epi32(_mm512_set1_epi32(1), shift), 1);
    const Ints sign = _mm512_srai_epi32(_mm512_and_si512(high, _mm512_sub_epi32(_mm512_setzero_si512(), shift)), 31);
    return _mm512_srav_epi32(_mm512_add_epi32(_mm512_add_epi32(high, sign), shifted_half), shift);
  }

  template <int kVectors>
  __attribute__((always_inline)) static void Store(const Ints (&values)[kVectors], const Int8ConvTask& task,
                                                   int8_t* output, int32_t channels) {
    if constexpr (kVectors == 4) {
      if (channels == 4 * kLanes) {
        return SixteenLaneLevels::LevelBytes(task.zero_point, task.output_min, task.output_max).Store(values, output);
      }
    }
    const Ints zero_point = _mm512_set1_epi32(task.zero_point);
    const __m128i low = _mm_set1_epi8(static_cast<int8_t>(task.output_min));
    const __m128i high = _mm_set1_epi8(static_cast<int8_t>(task.output_max));
    for (int v = 0; v < kVectors; ++v, output += kLanes, channels -= kLanes) {
      const __m128i bytes = _mm512_cvtsepi32_epi8(_mm512_add_epi32(values[v], zero_point));
      const __m128i clamped = _mm_min_epi8(_mm_max_epi8(bytes, low), high);
      if (channels >= kLanes) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(output), clamped);
      } else {
        std::memcpy(output, &clamped, static_cast<size_t>(channels));
      }
    }
  }
};

}  // namespace

const Int8ConvKernel kAvx512VnniInt8Conv = {
    .vector_channels = Dots::kLanes,
    .lane_taps = 4,
    .tap_bytes = 1,
    .offset = 128,
    .macs_per_cycle = 90,
    .rows = Int8ConvRows<Dots, 4, 4>,
};

const Int8ConvKernel& Avx512Int8Conv() { return CpuHasAvx512Vnni() ? kAvx512VnniInt8Conv : Avx2Int8Conv(); }

}  // namespace litebnn

#endif  // LITEBNN_X86
