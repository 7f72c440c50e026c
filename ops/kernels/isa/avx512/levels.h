// The file computes int8 outputs with AVX-512, up to 64 outputs at a time.
#pragma once

#include <cstdint>

#include "kernels/isa/avx512/lanes.h"
#include "kernels/isa/isa.h"
#include "kernels/isa/shared/int8/levels.h"
#include "kernels/isa/shared/output.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

// The struct has AVX-512's versions of the vector operations that shared/int8/levels.h requires.
struct SixteenLaneLevels : SixteenLanes {
  static Floats Truncate(Floats values) { return ToFloats(ToInts(values)); }
  static Floats Nearest(Floats values) { return ToFloats(ToNearest(values)); }
  static Ints ToNearest(Floats values) { return _mm512_cvtps_epi32(values); }
  static Floats MultiplyAdd(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }

  struct LevelBytes {
    const Ints zero_point, least, most;

    LevelBytes(int32_t zero, int32_t low, int32_t high)
        : zero_point(_mm512_set1_epi16(static_cast<int16_t>(zero))),
          least(_mm512_set1_epi8(static_cast<char>(low))),
          most(_mm512_set1_epi8(static_cast<char>(high))) {}

    __attribute__((always_inline)) void Store(const Ints (&levels)[4], int8_t* output) const {
      const Ints first = _mm512_adds_epi16(_mm512_packs_epi32(levels[0], levels[1]), zero_point);
      const Ints last = _mm512_adds_epi16(_mm512_packs_epi32(levels[2], levels[3]), zero_point);
      const Ints clamped = _mm512_min_epi8(_mm512_max_epi8(_mm512_packs_epi16(first, last), least), most);
      // Restores the order of 4-byte groups, which packing within 128-bit lanes changed.
      const Ints order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
      _mm512_storeu_si512(output, _mm512_permutexvar_epi32(order, clamped));
    }
    __attribute__((always_inline)) void Store(const Ints (&levels)[2], int8_t* output) const {
      const Ints words = _mm512_adds_epi16(_mm512_packs_epi32(levels[0], levels[1]), zero_point);
      const Ints clamped = _mm512_min_epi8(_mm512_max_epi8(_mm512_packs_epi16(words, words), least), most);
      const Ints order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 4, 8, 12, 1, 5, 9, 13);
      const Ints bytes = _mm512_permutexvar_epi32(order, clamped);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(output), _mm512_castsi512_si256(bytes));
    }
  };
};

// The class computes int8 outputs of kVectors vectors of channels from dot products. If kPlain is true, there are no
// padding corrections and no upper clamp.
template <int kVectors, bool kPlain, typename Levels>
struct LevelWriter {
  static constexpr int32_t kChannels = kVectors * SixteenLanes::kLanes;
  const Levels levels;
  const __m512 clamp_min, clamp_max;
  const float *const multiplier, *const bias;

  explicit LevelWriter(const BconvTask& task)
      : levels(task),
        clamp_min(_mm512_set1_ps(static_cast<float>(task.clamp_min))),
        clamp_max(_mm512_set1_ps(static_cast<float>(task.clamp_max))),
        multiplier(task.multiplier),
        bias(task.bias) {}

  // Writes the outputs of one pixel in `count` channels, at most kChannels, from `channel` on. The call dots(i) returns
  // the dot products of channels 16 * i to 16 * i + 15 of these channels. `index` is the position of the first output.
  // `corrections` has the pixel's padding corrections, or is null.
  template <typename Dots>
  __attribute__((always_inline)) void Write(int64_t index, int32_t channel, int32_t count, const int32_t* corrections,
                                            Dots dots) const {
    __m512i sums[kVectors];
    __m512 values[kVectors];
    Levels::template ForEach<kVectors>([&](int i) { sums[i] = dots(i); });
    if (!kPlain && corrections != nullptr) {
      Levels::template ForEach<kVectors>(
          [&](int i) { sums[i] = _mm512_add_epi32(sums[i], _mm512_loadu_si512(corrections + channel + 16 * i)); });
    }
    Levels::template ForEach<kVectors>(
        [&](int i) { values[i] = _mm512_max_ps(_mm512_cvtepi32_ps(sums[i]), clamp_min); });
    if (!kPlain) Levels::template ForEach<kVectors>([&](int i) { values[i] = _mm512_min_ps(values[i], clamp_max); });
    Levels::template ForEach<kVectors>(
        [&](int i) { values[i] = _mm512_mul_ps(values[i], _mm512_loadu_ps(multiplier + channel + 16 * i)); });
    Levels::template ForEach<kVectors>(
        [&](int i) { values[i] = _mm512_add_ps(values[i], _mm512_loadu_ps(bias + channel + 16 * i)); });
    const int8_t* added = levels.AddendOf(index);
    int8_t* outputs = levels.output + index;
    if (count == kChannels) return levels.Write(values, added, outputs);
    // Outputs of fewer channels are computed in a buffer.
    const __mmask64 is_output = (uint64_t{1} << count) - 1;
    alignas(64) int8_t buffer[64] = {};
    if (added != nullptr) _mm512_store_si512(buffer, _mm512_maskz_loadu_epi8(is_output, added));
    levels.Write(values, buffer, buffer);
    _mm512_mask_storeu_epi8(outputs, is_output, _mm512_load_si512(buffer));
  }
};

}  // namespace
}  // namespace litebnn
