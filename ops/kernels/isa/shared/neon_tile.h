// The file describes the channel tile of the NEON ISAs that count bits with CNT.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "kernels/isa/shared/tiled_weights.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

// For one pixel, a tile has four vectors of eight output channels, with a 16-bit sum for each channel.
constexpr int32_t kTileVectors = 4;
constexpr int32_t kVectorChannels = 8;
constexpr int32_t kTileChannels = kTileVectors * kVectorChannels;
using Weights = TiledWeights<uint16_t, kTileChannels, kTileChannels>;
constexpr int32_t kHalvesPerWord = Weights::kElementsPerWord;
constexpr int32_t kWeightsWordBytes = kTileChannels * static_cast<int32_t>(sizeof(uint32_t));
// The longest window whose sums fit 16 bits has this many words. Longer windows are computed in pieces.
constexpr int32_t kMaxWords = 65535 / kBitsPerWord;

// Adds a pixel's 16-bit sums over one piece of its window to the 32-bit sums `popcounts`.
inline void AddPiece(const uint16x8_t* sums, int32_t* popcounts) {
  for (int v = 0; v < kTileVectors; ++v, popcounts += kVectorChannels) {
    const int32x4_t low = vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(sums[v])));
    const int32x4_t high = vreinterpretq_s32_u32(vmovl_u16(vget_high_u16(sums[v])));
    vst1q_s32(popcounts, vaddq_s32(vld1q_s32(popcounts), low));
    vst1q_s32(popcounts + 4, vaddq_s32(vld1q_s32(popcounts + 4), high));
  }
}

}  // namespace
}  // namespace litebnn
