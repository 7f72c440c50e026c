// The file defines TileWeights, the part of the packed weights that one call of the inner loop uses.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa/avx2/intrinsics.h"
#include "kernels/isa/avx512_vbmi/chunks.h"
#include "kernels/isa/avx512_vbmi/inner_loop.h"
#include "kernels/isa/isa.h"
#include "kernels/isa/shared/arithmetic.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

// TileWeights points to the packed weights of a tile of channels.
struct TileWeights {
  const uint8_t* vectors;
  ptrdiff_t vector_bytes;
  int32_t channel, channels;

  // The constructor gives the tile as many of the remaining channels as the inner loop can compute for `windows`
  // windows.
  TileWeights(const BconvTask& task, ptrdiff_t bytes, int32_t first_channel, int32_t channel_end, int32_t windows)
      : vector_bytes(bytes), channel(first_channel), channels(channel_end - first_channel) {
    const int32_t left = Vectors(channels);
    channels = Min(channels, Min(kMaxVectors / windows, left == 3 ? 2 : left) * kVectorChannels);
    vectors = task.weights + channel / kVectorChannels * vector_bytes;
  }

  // Sums the table lookups of adjacent windows over some runs (contiguous taps) of the windows. `runs` has the runs'
  // tables, and `chunk` is the position of the first run's first chunk in the whole window.
  void Sum(const uint8_t* const* runs, int32_t run_count, int32_t run_chunks, int64_t chunk, int32_t windows,
           ptrdiff_t window_bytes, ByteSums& sums) const {
    const uint8_t* const first = vectors + kCompensationBytes + chunk * kVectorChannels;
    constexpr decltype(&SumChunks<1, 1, 1>) kSumChunks[kMaxWindows][kMaxVectors] = {
        {SumChunks<1, 1, 1>, SumChunks<1, 2, 1>, nullptr, SumChunks<2, 2, 1>},
        {SumChunks<1, 1, 2>, SumChunks<2, 1, 2>}};
    const auto sum_chunks = kSumChunks[windows - 1][Vectors(channels) - 1];
    sum_chunks(runs, run_count, run_chunks, window_bytes, first, vector_bytes, sums);
  }

  // Returns the compensations, which are added to dot products, of 16 channels. They are one quarter of a vector of 64
  // channels.
  __m512i Compensation(int32_t vector, int quarter) const {
    return _mm512_load_si512(reinterpret_cast<const int32_t*>(vectors + vector * vector_bytes) + 16 * quarter);
  }
};

}  // namespace
}  // namespace litebnn
