#include "inner_loops.h"
#include "kernels/isa/avx2/inner_loop.h"

namespace litebnn {

int64_t InnerLoopAvx2(int64_t macs) {
  constexpr int kVectors = TileSums<1>::kVectors;
  constexpr int32_t kNibbles = 16 * kGroupNibbles;
  alignas(32) static uint8_t weights[kNibbles * kVectors * kVectorChannels];
  static uint16_t offsets[kNibbles];
  // Pages that nothing has been written to are all the same memory, which is slow to read under several addresses.
  if (weights[1] == 0) {
    for (size_t i = 0; i < sizeof(weights); ++i) weights[i] = static_cast<uint8_t>(i * 7 % 16);
  }
  for (int32_t i = 0; i < kNibbles; ++i) offsets[i] = static_cast<uint16_t>(i * 7 % 256 * kTableStep);
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

}  // namespace litebnn
