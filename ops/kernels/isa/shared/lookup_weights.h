// The file packs the weights of the table lookup kernels (lookup_tables.h), two nibbles per byte. An ISA unpacks them
// for its inner loop.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa/shared/arithmetic.h"
#include "kernels/isa/shared/lookup_tables.h"
#include "kernels/isa/shared/nibble_plan.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

// A tile of channels consists of one, two or four units. A unit is 32 channels.
constexpr int32_t kUnitChannels = 32;
constexpr int32_t kTileChannels = 4 * kUnitChannels;

// Channels are split into tiles, the largest tiles first. Returns the number of channels of the next tile if `channels`
// channels are not yet in a tile.
int32_t TileChannels(int32_t channels) {
  return channels <= kUnitChannels ? kUnitChannels : channels <= 3 * kUnitChannels ? 2 * kUnitChannels : kTileChannels;
}

size_t UnitBytes(int32_t words) {
  return kUnitChannels * (sizeof(uint16_t) + static_cast<size_t>(words * kNibblesPerWord / 2));
}

size_t PiecesBytes(int32_t channels, int32_t words) {
  return static_cast<size_t>((channels + kUnitChannels - 1) / kUnitChannels) * UnitBytes(words);
}

// Each tap of a long filter is split into pieces. The function returns the number of words of each piece but the last,
// which may have fewer.
int32_t PieceWords(int32_t tap_words) { return Min(tap_words, kMaxWords); }

// Calls visit(tap, word, words) for each piece of a long filter: `words` words of `tap`, from `word` on.
template <typename Visit>
void ForEachPiece(int32_t taps, int32_t tap_words, Visit visit) {
  for (int32_t tap = 0; tap < taps; ++tap) {
    for (int32_t word = 0; word < tap_words; word += PieceWords(tap_words)) {
      visit(tap, word, Min(PieceWords(tap_words), tap_words - word));
    }
  }
}

size_t PackedWeightsBytes(int32_t channels, int32_t taps, int32_t tap_words) {
  if (taps * tap_words <= kMaxWords) return PiecesBytes(channels, taps * tap_words);
  size_t bytes = 0;
  ForEachPiece(taps, tap_words, [&](int32_t, int32_t, int32_t words) { bytes += PiecesBytes(channels, words); });
  return bytes;
}

// Packs a filter in tiles. A tile begins with a 16-bit number for each of its channels, the compensation that is
// subtracted from dot products. Then the tile has [nibbles / 2][channels] bytes of two nibbles each.
// Order::Compensation(lane) and Order::Byte(lane) return the positions of a channel within its unit of 32 channels.
//
// A dot product is depth + 4 * E + 2 * parity(window) - compensation, where E is the sum of the window's lookups. The
// compensation is 8 * nibbles + 2 * parity(filter). parity() is the number of odd-parity nibbles.
template <typename Order>
void PackPiece(const uint32_t* filter, int32_t channels, int64_t row_words, int32_t words, uint8_t* packed) {
  uint8_t* tile = packed;
  for (int32_t first = 0, tile_channels; first < channels; first += tile_channels) {
    tile_channels = TileChannels(channels - first);
    auto* compensations = reinterpret_cast<uint16_t*>(tile);
    uint8_t* weights = tile + tile_channels * static_cast<int32_t>(sizeof(uint16_t));
    tile += static_cast<size_t>(tile_channels / kUnitChannels) * UnitBytes(words);
    for (int32_t channel = first; channel < Min(channels, first + tile_channels); ++channel) {
      const int32_t lane = channel % kUnitChannels, unit = channel - first - lane;
      const uint32_t* row = filter + channel * row_words;
      int32_t parity = 0;
      // The order of nibbles is that of TableOffsets: the low nibbles of a word's bytes come first, then the high
      // nibbles.
      for (int32_t nibble = 0; nibble < words * kNibblesPerWord; ++nibble) {
        const int32_t in_word = nibble % kNibblesPerWord, shift = in_word % 4 * 8 + in_word / 4 * 4;
        const auto value = static_cast<int32_t>(row[nibble / kNibblesPerWord] >> shift & 15u);
        weights[static_cast<ptrdiff_t>(nibble / 2) * tile_channels + unit + Order::Byte(lane)] |=
            static_cast<uint8_t>(value << (nibble % 2 * 4));
        parity += Parity(value);
      }
      compensations[unit + Order::Compensation(lane)] = static_cast<uint16_t>(8 * kNibblesPerWord * words + 2 * parity);
    }
  }
}

// Packs the filter of a layer. A long filter is packed in pieces, each in the layout of a separate filter.
template <typename Order>
void PackWeights(const uint32_t* filter, int32_t channels, int32_t taps, int32_t tap_words, uint8_t* packed) {
  const int32_t words = taps * tap_words;
  if (words <= kMaxWords) return PackPiece<Order>(filter, channels, words, words, packed);
  ForEachPiece(taps, tap_words, [&](int32_t tap, int32_t word, int32_t piece_words) {
    PackPiece<Order>(filter + int64_t{tap} * tap_words + word, channels, words, piece_words, packed);
    packed += PiecesBytes(channels, piece_words);
  });
}

}  // namespace
}  // namespace litebnn
