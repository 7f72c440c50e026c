// The tile of channels that the NEON ISAs which count bits sum up.
#pragma once

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

}  // namespace
}  // namespace litebnn
