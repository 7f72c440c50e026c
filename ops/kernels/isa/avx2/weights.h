// Weights as AVX2 looks sums up with them: packed by two nibbles a byte, and unpacked for the inner loop.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/isa/avx2/nibble_plan.h"
#include "kernels/isa/avx2/table_offsets.h"

namespace litebnn {
// Nothing in here may be shared with files compiled for other CPUs.
namespace {

constexpr int32_t kTileVectors = 4;
constexpr int32_t kTileChannels = kTileVectors * kVectorChannels;

// A tile that begins with the next of `channels` channels has as many vectors: 1, 2 or 4, as TileSums wants it.
int32_t Vectors(int32_t channels) {
  return channels <= kVectorChannels ? 1 : channels <= 3 * kVectorChannels ? 2 : kTileVectors;
}

size_t VectorBytes(int32_t words) {
  return kVectorChannels * (sizeof(uint16_t) + static_cast<size_t>(words * kNibblesPerWord / 2));
}

size_t PiecesBytes(int32_t channels, int32_t words) {
  return static_cast<size_t>((channels + kVectorChannels - 1) / kVectorChannels) * VectorBytes(words);
}

// The words of a tap in each piece of a filter that is too long to be summed up at once, but for the tap's last piece.
int32_t PieceWords(int32_t tap_words) { return Min(tap_words, kMaxWords); }

// Calls visit(tap, word, words) for each piece.
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

// Where channel `lane` of 32 is in a vector of bytes: even bytes become the 16 bit sums of the first 16 channels, odd
// bytes those of the last, and unpacking such a vector's low or high half within 128 bits gives 8 channels in order.
constexpr int32_t ByteOfChannel(int32_t lane) {
  return lane % 8 / 4 * 16 + lane % 16 / 8 * 8 + lane % 4 * 2 + lane / 16;
}

// Tiles: [vectors][2][16] excesses of 16 bits, then [nibbles / 2][vectors][kVectorChannels] bytes of two nibbles. With
// E, what a dot product's lookups sum up to, and the odd nibbles of its window and filter, it is depth - 8 * nibbles +
// 4 * E + 2 * odd(window) - 2 * odd(filter). The excess is 8 * nibbles + 2 * odd(filter).
void PackPiece(const uint32_t* filter, int32_t channels, int64_t row_words, int32_t words, uint8_t* packed) {
  uint8_t* tile = packed;
  for (int32_t first = 0, vectors; first < channels; first += vectors * kVectorChannels) {
    vectors = Vectors(channels - first);
    auto* excesses = reinterpret_cast<uint16_t*>(tile);
    uint8_t* weights = tile + vectors * kVectorChannels * static_cast<int32_t>(sizeof(uint16_t));
    tile += static_cast<size_t>(vectors) * VectorBytes(words);
    for (int32_t channel = first; channel < Min(channels, first + vectors * kVectorChannels); ++channel) {
      const int32_t vector = (channel - first) / kVectorChannels, lane = channel % kVectorChannels;
      const int32_t byte = vector * kVectorChannels + ByteOfChannel(lane);
      const uint32_t* row = filter + channel * row_words;
      int32_t odd = 0;
      // In the order of WriteTableOffsets.
      for (int32_t nibble = 0; nibble < words * kNibblesPerWord; ++nibble) {
        const int32_t in_word = nibble % kNibblesPerWord, shift = in_word % 4 * 8 + in_word / 4 * 4;
        const auto value = static_cast<int32_t>(row[nibble / kNibblesPerWord] >> shift & 15u);
        weights[static_cast<ptrdiff_t>(nibble / 2) * vectors * kVectorChannels + byte] |=
            static_cast<uint8_t>(value << (nibble % 2 * 4));
        odd += IsOdd(value);
      }
      excesses[vector * kVectorChannels + ByteOfChannel(lane) % 2 * 16 + ByteOfChannel(lane) / 2] =
          static_cast<uint16_t>(8 * kNibblesPerWord * words + 2 * odd);
    }
  }
}

// A long filter is packed piece by piece, as if each were one of its own.
void PackWeights(const uint32_t* filter, int32_t channels, int32_t taps, int32_t tap_words, uint8_t* packed) {
  const int32_t words = taps * tap_words;
  if (words <= kMaxWords) return PackPiece(filter, channels, words, words, packed);
  ForEachPiece(taps, tap_words, [&](int32_t tap, int32_t word, int32_t piece_words) {
    PackPiece(filter + int64_t{tap} * tap_words + word, channels, words, piece_words, packed);
    packed += PiecesBytes(channels, piece_words);
  });
}

// `nibbles` is even.
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
