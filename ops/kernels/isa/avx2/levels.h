// The file computes int8 outputs with AVX2, 32 outputs at a time.
#pragma once

#include <cstdint>

#include "kernels/isa/avx2/lanes.h"
#include "kernels/isa/isa.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

// The class rounds floats to int8 values, as Int8Epilogue in shared/output.h does. If kAdds is true, the class then
// adds the values of an int8 tensor by a FloatSum (kernels.h). This FloatSum must have no exceptions, which are
// operands whose sum needs a correction. If kFuses is true, the sum uses fused multiply-adds.
template <bool kAdds, bool kFuses>
struct Levels {
  const __m256 low, high, first_scale, second_scale, offset;
  const __m256i second_zero_point, zero_point, least, most;
  const int8_t* const addend;
  int8_t* const output;

  explicit Levels(const BconvTask& task) : Levels(task, task.epilogue.int8_sum) {}
  Levels(const BconvTask& task, const FloatSum& sum)
      : low(_mm256_set1_ps(static_cast<float>(-128 - task.zero_point))),
        high(_mm256_set1_ps(static_cast<float>(127 - task.zero_point))),
        first_scale(_mm256_set1_ps(sum.first_scale)),
        second_scale(_mm256_set1_ps(sum.second_scale)),
        offset(_mm256_set1_ps(-static_cast<float>(sum.second_zero_point) * sum.second_scale)),
        second_zero_point(_mm256_set1_epi32(sum.second_zero_point)),
        zero_point(_mm256_set1_epi16(static_cast<int16_t>(kAdds ? sum.zero_point : task.zero_point))),
        least(_mm256_set1_epi8(Level(kAdds ? sum.low + sum.zero_point : -128))),
        most(_mm256_set1_epi8(Level(kAdds ? sum.high + sum.zero_point : 127))),
        addend(task.epilogue.int8_addend),
        output(static_cast<int8_t*>(task.output)) {}

  static char Level(int32_t value) { return static_cast<char>(value); }

  // Applies an operation to four vectors. The loop interleaves them, because the operations on one vector depend on
  // each other, and the CPU would have to wait for each result.
  template <typename Function>
  __attribute__((always_inline)) static void ForEach(Function function) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) function(i);
  }

  // Adds one half, with the sign of each value, to the values. Truncation then rounds halves away from zero.
  __attribute__((always_inline)) static void AddHalf(__m256 (&values)[4]) {
    __m256 half[4];
    ForEach([&](int i) { half[i] = _mm256_and_ps(values[i], _mm256_set1_ps(-0.0f)); });
    ForEach([&](int i) { half[i] = _mm256_or_ps(half[i], _mm256_set1_ps(0x1.fffffep-2f)); });
    ForEach([&](int i) { values[i] = _mm256_add_ps(values[i], half[i]); });
  }

  // Adds the values of the int8 addend, from position `index` on, to `values`. Neither `values` nor the added numbers
  // include a zero point.
  __attribute__((always_inline)) void Add(__m256 (&values)[4], int64_t index) const {
    __m256 second[4];
    ForEach([&](int i) { values[i] = _mm256_round_ps(values[i], _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); });
    ForEach([&](int i) {
      const __m256i level = EightLanes::LoadBytes(addend + index + 8 * i, 8);
      second[i] = _mm256_cvtepi32_ps(kFuses ? level : _mm256_sub_epi32(level, second_zero_point));
    });
    if (kFuses) {
      ForEach([&](int i) { second[i] = _mm256_fmadd_ps(second[i], second_scale, offset); });
      ForEach([&](int i) { values[i] = _mm256_fmadd_ps(values[i], first_scale, second[i]); });
    } else {
      ForEach([&](int i) { second[i] = _mm256_mul_ps(second[i], second_scale); });
      ForEach([&](int i) { values[i] = _mm256_add_ps(_mm256_mul_ps(values[i], first_scale), second[i]); });
      AddHalf(values);
    }
  }

  // Writes the int8 outputs of 32 values in channel order; `index` is the position of the first one in the output.
  __attribute__((always_inline)) void Write(__m256 (&values)[4], int64_t index) const {
    ForEach([&](int i) { values[i] = _mm256_max_ps(values[i], low); });
    ForEach([&](int i) { values[i] = _mm256_min_ps(values[i], high); });
    AddHalf(values);
    if (kAdds) Add(values, index);
    __m256i levels[4];
    ForEach([&](int i) { levels[i] = kFuses ? _mm256_cvtps_epi32(values[i]) : _mm256_cvttps_epi32(values[i]); });
    const __m256i first = _mm256_adds_epi16(_mm256_packs_epi32(levels[0], levels[1]), zero_point);
    const __m256i last = _mm256_adds_epi16(_mm256_packs_epi32(levels[2], levels[3]), zero_point);
    const __m256i clamped = _mm256_min_epi8(_mm256_max_epi8(_mm256_packs_epi16(first, last), least), most);
    // Restores the order of 4-byte groups, which packing within 128-bit lanes changed.
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(output + index), _mm256_permutevar8x32_epi32(clamped, order));
  }
};

}  // namespace
}  // namespace litebnn
