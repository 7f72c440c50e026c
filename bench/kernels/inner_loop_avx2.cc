#include "inner_loops.h"
#include "kernels/isa/avx2/inner_loop.h"

namespace litebnn {

int64_t InnerLoopAvx2(int64_t macs) {
  constexpr int kVectors = TileSums<1>::kVectors;
  constexpr int32_t kNibbles = 16 * kGroupNibbles;
  alignas(32) static uint8_t weights[kNibbles * kVectors * kVectorChannels];
  static uint16_t offsets[kNibbles];
  // The program writes the weights once. Pages that were never written would all map to one physical page, which is
  // slow to read under several addresses.
  if (weights[1] == 0) {
    for (size_t i = 0; i < sizeof(weights); ++i) weights[i] = static_cast<uint8_t>(i * 7 % 16);
  }
  for (int32_t i = 0; i < kNibbles; ++i) offsets[i] = static_cast<uint16_t>(i * 7 % 256 * kTableStride);
  const uint16_t* const pairs[] = {offsets};
  const Piece all = {0, kNibbles};
  const int64_t macs_per_block = int64_t{2} * 4 * kNibbles * kVectors * kVectorChannels;
  int64_t done = 0;
  for (; done < macs; done += macs_per_block) {
    const TileSums<1> sums(pairs, &all, 1, weights);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) __asm__ volatile("" : : "x"(sums.even[i]), "x"(sums.odd[i]));
  }
  return done;
}

void OutputLoopAvx2(int64_t count) {
  alignas(64) static float outputs[kOutputLoopFloats];
  __m256i sums = _mm256_setzero_si256();
  __m256 multiplier = _mm256_set1_ps(0.5f), bias = _mm256_set1_ps(1.5f);
  const __m256i four = _mm256_set1_epi16(4), compensation = _mm256_set1_epi16(9), two_to_23 = _mm256_set1_epi16(0x4B00);
  const __m256 base = _mm256_set1_ps(8388608.0f);
  // The loop is unrolled, so that its time does not depend on its alignment. Without unrolling, an iteration on Zen 5
  // takes 2.8 or 3.9 cycles.
#pragma GCC unroll 4
  for (int64_t i = 0; i < count; i += 16) {
    // This statement prevents the compiler from assuming that the sums are unchanged, or that nothing reads the
    // outputs.
    __asm__ volatile("" : "+x"(sums) : "r"(outputs) : "memory");
    const __m256i dots = _mm256_subs_epu16(_mm256_maddubs_epi16(sums, four), compensation);
    const __m256i halves[2] = {_mm256_unpacklo_epi16(dots, two_to_23), _mm256_unpackhi_epi16(dots, two_to_23)};
    for (int half = 0; half < 2; ++half) {
      const __m256 floats = _mm256_sub_ps(_mm256_castsi256_ps(halves[half]), base);
      _mm256_storeu_ps(outputs + i % kOutputLoopFloats + 8 * half,
                       _mm256_add_ps(_mm256_mul_ps(floats, multiplier), bias));
    }
  }
}

}  // namespace litebnn
