// The file lays out weights in tiles of channels, so that a vector holds adjacent channels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa/shared/arithmetic.h"
#include "kernels/kernels.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

// The layout of weights is [tiles][words][elements of a word][channels of the tile]. Every tile but the last has
// kTileChannels channels. The last tile has as many vectors of kVectorChannels as it needs.
template <typename Element, int32_t kTileChannels, int32_t kVectorChannels>
struct TiledWeights {
  static constexpr int32_t kElementsPerWord = sizeof(uint32_t) / sizeof(Element);

  static int32_t Padded(int32_t channels) {
    return (channels + kVectorChannels - 1) / kVectorChannels * kVectorChannels;
  }

  static size_t Bytes(int32_t channels, int32_t words) {
    return static_cast<size_t>(Padded(channels)) * static_cast<size_t>(words) * sizeof(uint32_t);
  }

  static size_t PackedBytes(int32_t channels, int32_t taps, int32_t tap_words) {
    return Bytes(channels, taps * tap_words);
  }

  static void Pack(const uint32_t* filter, int32_t channels, int32_t taps, int32_t tap_words, uint8_t* packed) {
    const int32_t words = taps * tap_words;
    for (int32_t channel = 0; channel < channels; ++channel) {
      const int32_t lane = channel % kTileChannels, first = channel - lane;
      const int32_t tile_channels = Min(kTileChannels, Padded(channels - first));
      auto* weight = reinterpret_cast<Element*>(packed + Bytes(first, words)) + lane;
      for (int32_t word = 0; word < words; ++word, ++filter) {
        for (int32_t element = 0; element < kElementsPerWord; ++element, weight += tile_channels) {
          *weight = static_cast<Element>(*filter >> (kBitsPerWord / kElementsPerWord * element));
        }
      }
    }
  }
};

}  // namespace
}  // namespace litebnn
