// The inner loop of AVX-512 does 512 binary multiply-adds by three instructions: XOR, VPOPCNTD and an addition. Each
// lane of a vector belongs to one of 16 output channels. bench/kernels also times the loop alone.
#pragma once

#include <cstdint>

#include "kernels/isa/avx2/intrinsics.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

constexpr int32_t kVectorChannels = 16;

// A TileSums has the popcount sums of kPixels pixels in kVectors * 16 channels.
template <int kPixels, int kVectors>
struct TileSums {
  __m512i sums[kPixels][kVectors] = {};

  // `input` points to each pixel's words. The layout of `weights` is [words][kVectors][16 channels].
  void Add(const uint32_t* const* input, const uint32_t* weights, int32_t words) {
    for (int32_t word = 0; word < words; ++word, weights += kVectors * kVectorChannels) {
      __m512i filter[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) filter[v] = _mm512_load_si512(weights + v * kVectorChannels);
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p) {
        const __m512i x = _mm512_set1_epi32(static_cast<int>(input[p][word]));
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          sums[p][v] = _mm512_add_epi32(sums[p][v], _mm512_popcnt_epi32(_mm512_xor_si512(x, filter[v])));
        }
      }
    }
  }
};

}  // namespace
}  // namespace litebnn
