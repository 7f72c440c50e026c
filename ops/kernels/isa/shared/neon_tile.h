// The tile of channels that the NEON ISAs which count bits sum up.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "kernels/isa/shared/tiled_weights.h"

namespace litebnn {
// Every ISA's file has its own copy, compiled for its own CPU.
namespace {

// Sums are of 16 bits.
constexpr int32_t kTileVectors = 4;
constexpr int32_t kVectorChannels = 8;
constexpr int32_t kTileChannels = kTileVectors * kVectorChannels;
using Weights = TiledWeights<uint16_t, kTileChannels, kTileChannels>;
constexpr int32_t kStepsPerWord = Weights::kStepsPerWord;
constexpr int32_t kWeightsWordBytes = kTileChannels * static_cast<int32_t>(sizeof(uint32_t));
// More words would overflow the sums: longer windows are summed up piece by piece.
constexpr int32_t kMaxWords = 65535 / kBitsPerWord;

// Adds a piece's sums, those of a pixel, to those of the pieces before it.
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
