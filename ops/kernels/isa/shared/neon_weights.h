// How both NEON ISAs hold weights: in tiles of 32 channels, of which a lane of a vector is 16 bits of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/kernels.h"

namespace litebnn {
// Every ISA's file has its own copy, compiled for its own CPU.
namespace {

constexpr int32_t kTileVectors = 4;
constexpr int32_t kVectorChannels = 8;
constexpr int32_t kTileChannels = kTileVectors * kVectorChannels;
// Of 16 bits.
constexpr int32_t kStepsPerWord = 2;
constexpr int32_t kWeightsWordBytes = kStepsPerWord * kTileChannels * static_cast<int32_t>(sizeof(uint16_t));

inline size_t PackedWeightsBytes(int32_t channels, int32_t words) {
  const int32_t tiles = (channels + kTileChannels - 1) / kTileChannels;
  return static_cast<size_t>(tiles) * static_cast<size_t>(words) * kWeightsWordBytes;
}

// [tiles][words][kStepsPerWord][kTileVectors][kVectorChannels] of 16 bits.
inline void PackWeights(const uint32_t* filter, int32_t channels, int32_t runs, int32_t run_words, uint8_t* packed) {
  const int32_t words = runs * run_words;
  std::memset(packed, 0, PackedWeightsBytes(channels, words));
  for (int32_t channel = 0; channel < channels; ++channel) {
    auto* tile = reinterpret_cast<uint16_t*>(packed) +
                 static_cast<ptrdiff_t>(channel / kTileChannels) * words * kStepsPerWord * kTileChannels;
    for (int32_t word = 0; word < words; ++word) {
      const uint32_t bits = filter[static_cast<int64_t>(channel) * words + word];
      for (int32_t step = 0; step < kStepsPerWord; ++step) {
        tile[(word * kStepsPerWord + step) * kTileChannels + channel % kTileChannels] =
            static_cast<uint16_t>(bits >> (16 * step));
      }
    }
  }
}

}  // namespace
}  // namespace litebnn
