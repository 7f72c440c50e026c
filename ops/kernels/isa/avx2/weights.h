// The layout of the weights for AVX2's table lookups, and the functions that unpack weights for the inner loop.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/isa/avx2/inner_loop.h"
#include "kernels/isa/shared/lookup_weights.h"

namespace litebnn {
// Internal linkage keeps the linker from merging copies that are compiled for different CPUs.
namespace {

static_assert(kVectorChannels == kUnitChannels);
constexpr int32_t kTileVectors = kTileChannels / kVectorChannels;

struct VectorOrder {
  // Returns the byte of a vector that channel `lane` has. The sums of even bytes become a vector of 16-bit sums for the
  // first 16 channels, those of odd bytes one for the last 16. Unpacking the halves of their 128-bit lanes then gives 8
  // channels in order.
  static constexpr int32_t Byte(int32_t lane) {
    return lane % 8 / 4 * 16 + lane % 16 / 8 * 8 + lane % 4 * 2 + lane / 16;
  }
  static constexpr int32_t Compensation(int32_t lane) { return Byte(lane) % 2 * 16 + Byte(lane) / 2; }
};

// Unpacks the weights of a tile of `vectors` vectors of channels. `nibbles` is even.
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
