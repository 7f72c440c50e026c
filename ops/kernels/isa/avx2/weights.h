// The layout of the weights for AVX2's table lookups, and the functions that unpack weights for the inner loop.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/isa/avx2/inner_loop.h"
#include "kernels/isa/shared/lookup_weights.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

static_assert(kVectorChannels == kUnitChannels);
constexpr int32_t kTileVectors = kTileChannels / kVectorChannels;

struct VectorOrder {
  // Returns the byte, in a vector of 32 bytes, that has the weights of channel `lane` (0 to 31). The first 16 channels
  // have the even bytes, and the last 16 channels the odd bytes. The reason is that even and odd bytes are widened to
  // separate vectors of 16-bit sums. The order within each vector suits the instructions that unpack the halves of
  // 128-bit lanes: their results are 8 channels in order.
  static constexpr int32_t Byte(int32_t lane) {
    return lane % 8 / 4 * 16 + lane % 16 / 8 * 8 + lane % 4 * 2 + lane / 16;
  }
  static constexpr int32_t Compensation(int32_t lane) { return Byte(lane) % 2 * 16 + Byte(lane) / 2; }
};

// Unpacks the weights of a tile, which has `vectors` vectors of 32 channels. `nibbles`, the number of nibbles per
// channel, must be even.
void UnpackWeights(const uint8_t* packed, int32_t nibbles, int32_t vectors, uint8_t* weights) {
  const __m256i mask = _mm256_set1_epi8(0x0F);
  for (int32_t nibble = 0; nibble < nibbles; nibble += 2) {
    for (int32_t vector = 0; vector < vectors; ++vector) {
      const __m256i both = _mm256_load_si256(reinterpret_cast<const __m256i*>(packed));
      packed += kVectorChannels;
      auto* low = reinterpret_cast<__m256i*>(weights + (nibble * vectors + vector) * kVectorChannels);
      _mm256_store_si256(low, _mm256_and_si256(both, mask));
      _mm256_store_si256(low + vectors, _mm256_and_si256(_mm256_srli_epi16(both, 4), mask));
    }
  }
}

}  // namespace
}  // namespace litebnn
