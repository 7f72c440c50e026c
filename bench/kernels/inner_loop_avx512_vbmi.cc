#include "inner_loops.h"
#include "kernels/isa/avx512_vbmi/inner_loop.h"

namespace litebnn {

int64_t InnerLoopAvx512Vbmi(int64_t macs) {
  constexpr int32_t kChunks = 64;
  // The loop is fastest with two vectors of channels, because the counts of two vectors stay in registers.
  constexpr int32_t kVectors = 2;
  // The distance in bytes from one vector of weights to the next, as in packed weights. A distance of exactly 4 KiB
  // would take a tenth longer on AMD's Zen 5.
  constexpr size_t kVectorBytes = kCompensationBytes + kChunks * kVectorChannels;
  alignas(64) static uint8_t weights[kVectors * kVectorBytes];
  alignas(64) static uint8_t tables[kChunks * kTableBytes];
  ByteSums sums;
  const uint8_t* const run = tables;
  // This statement hides from the compiler that the arrays contain zeros.
  __asm__ volatile("" : : "r"(weights), "r"(tables) : "memory");
  const int64_t macs_per_tile = int64_t{kLanePixels} * kChunks * kChunkBits * kVectors * kVectorChannels;
  int64_t done = 0;
  for (; done < macs; done += macs_per_tile) {
    SumChunks<1, kVectors, 1>(&run, 1, kChunks, 0, weights, kVectorBytes, sums);
    __asm__ volatile("" : : "r"(&sums) : "memory");
  }
  return done;
}

void OutputLoopAvx512Vbmi(int64_t count) {
  alignas(64) static float outputs[kOutputLoopFloats];
  __m512i sums = _mm512_setzero_si512();
  const __m512 multiplier = _mm512_set1_ps(0.5f), bias = _mm512_set1_ps(1.5f);
  const __m512i base = _mm512_set1_epi32(9), four = _mm512_set1_epi32(4);
  for (int64_t i = 0; i < count; i += 16) {
    // This statement prevents the compiler from assuming that the sums are unchanged, or that nothing reads the
    // outputs.
    __asm__ volatile("" : "+v"(sums) : : "memory");
    const __m512 dots = _mm512_cvtepi32_ps(_mm512_dpbusd_epi32(base, sums, four));
    const __m512 clamped = _mm512_max_ps(dots, _mm512_setzero_ps());
    _mm512_store_ps(outputs + i % kOutputLoopFloats, _mm512_add_ps(_mm512_mul_ps(clamped, multiplier), bias));
  }
}

}  // namespace litebnn
