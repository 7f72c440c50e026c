#include "bench/inner_loop_tables.h"
#include "kernels/avx2/inner_loop.h"

namespace litebnn {

int64_t InnerLoopAvx2(int64_t macs) {
  constexpr int kVectors = 4;
  alignas(32) static uint8_t weights[kBlockNibbles * kVectors * kVectorChannels];
  static uint16_t offsets[kBlockNibbles];
  for (int32_t i = 0; i < kBlockNibbles; ++i) offsets[i] = static_cast<uint16_t>(i * 7 % 256 * 16);
  const int64_t macs_per_block = int64_t{2} * 4 * kBlockNibbles * kVectors * kVectorChannels;
  int64_t done = 0;
  for (; done < macs; done += macs_per_block) {
    PairSums<kVectors> sums;
    sums.Add(offsets, weights, kBlockNibbles);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) __asm__ volatile("" : : "x"(sums.even[v]), "x"(sums.odd[v]));
  }
  return done;
}

}  // namespace litebnn
