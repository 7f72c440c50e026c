// The file has AVX2's versions of the vector operations that shared/int8/levels.h requires.
#pragma once

#include <cstdint>

#include "kernels/isa/avx2/lanes.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

struct EightLaneLevels : EightLanes {
  static Floats Truncate(Floats values) { return _mm256_round_ps(values, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
  static Floats Nearest(Floats values) {
    return _mm256_round_ps(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Ints ToNearest(Floats values) { return _mm256_cvtps_epi32(values); }
  static Floats MultiplyAdd(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }

  struct LevelBytes {
    const Ints zero_point, least, most;

    LevelBytes(int32_t zero, int32_t low, int32_t high)
        : zero_point(_mm256_set1_epi16(static_cast<int16_t>(zero))),
          least(_mm256_set1_epi8(static_cast<char>(low))),
          most(_mm256_set1_epi8(static_cast<char>(high))) {}

    __attribute__((always_inline)) void Store(const Ints (&levels)[4], int8_t* output) const {
      const Ints first = _mm256_adds_epi16(_mm256_packs_epi32(levels[0], levels[1]), zero_point);
      const Ints last = _mm256_adds_epi16(_mm256_packs_epi32(levels[2], levels[3]), zero_point);
      const Ints clamped = _mm256_min_epi8(_mm256_max_epi8(_mm256_packs_epi16(first, last), least), most);
      // Restores the order of 4-byte groups, which packing within 128-bit lanes changed.
      const Ints order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(output), _mm256_permutevar8x32_epi32(clamped, order));
    }
  };
};

}  // namespace
}  // namespace litebnn
