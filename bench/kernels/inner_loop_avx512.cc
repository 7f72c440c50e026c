#include "inner_loops.h"
#include "kernels/isa/avx512/inner_loop.h"

namespace litebnn {

int64_t InnerLoopAvx512(int64_t macs) {
  constexpr int kPixels = 6, kVectors = 4;
  constexpr int32_t kWords = 72;
  alignas(64) static uint32_t weights[kWords * kVectors * kVectorChannels];
  static uint32_t words[kPixels][kWords];
  const uint32_t* const input[kPixels] = {words[0], words[1], words[2], words[3], words[4], words[5]};
  // This statement hides from the compiler that `weights` and `words` contain only zeros.
  __asm__ volatile("" : : "r"(weights), "r"(words) : "memory");
  const int64_t macs_per_tile = int64_t{kPixels} * kWords * 32 * kVectors * kVectorChannels;
  int64_t done = 0;
  for (; done < macs; done += macs_per_tile) {
    TileSums<kPixels, kVectors> tile;
    tile.Add(input, weights, kWords);
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) __asm__ volatile("" : : "v"(tile.sums[p][v]));
    }
  }
  return done;
}

void OutputLoopAvx512(int64_t count) {
  alignas(64) static float outputs[kOutputLoopFloats];
  __m512i sums = _mm512_setzero_si512();
  const __m512 multiplier = _mm512_set1_ps(0.5f), bias = _mm512_set1_ps(1.5f);
  const __m512 depth = _mm512_set1_ps(9.0f), minus_two = _mm512_set1_ps(-2.0f);
#pragma GCC unroll 4
  for (int64_t i = 0; i < count; i += kVectorChannels) {
    // This statement prevents the compiler from assuming that the sums are unchanged, or that nothing reads the
    // outputs.
    __asm__ volatile("" : "+v"(sums) : "r"(outputs) : "memory");
    const __m512 dots = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), minus_two, depth);
    const __m512 clamped = _mm512_max_ps(dots, _mm512_setzero_ps());
    _mm512_store_ps(outputs + i % kOutputLoopFloats, _mm512_add_ps(_mm512_mul_ps(clamped, multiplier), bias));
  }
}

}  // namespace litebnn
