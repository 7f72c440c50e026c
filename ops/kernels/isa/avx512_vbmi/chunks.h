// The file cuts words into chunks of six bits. Chunks of the input become table offsets, chunks of the weights become
// indices into a table. The words of each tap are cut separately, so that overlapping windows can share the table
// offsets of their common taps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa/avx2/intrinsics.h"
#include "kernels/isa/avx512_vbmi/inner_loop.h"
#include "kernels/isa/shared/arithmetic.h"
#include "kernels/kernels.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

// One vector has the 16-bit table offsets of this many chunks (six bits each), which are cut from six whole words.
constexpr int32_t kCutChunks = 32;
constexpr int32_t kCutWords = 6;

constexpr int32_t Chunks(int32_t tap_words) { return (tap_words * kBitsPerWord + kChunkBits - 1) / kChunkBits; }

// Returns the number of 16-bit values of a staged tap. They are the table offset of each chunk of six bits, and the
// number of chunks with odd parity.
constexpr int32_t StagedLength(int32_t tap_words) { return Chunks(tap_words) + 1; }
size_t StagedBytes(int32_t tap_words) { return static_cast<size_t>(StagedLength(tap_words)) * sizeof(uint16_t); }

constexpr __mmask32 FirstBits(int32_t count) { return static_cast<__mmask32>((uint64_t{1} << count) - 1); }

// A ChunkCutter cuts the words of several taps at once into chunks of six bits, and converts the chunks to table
// offsets.
struct ChunkCutter {
  alignas(64) uint8_t bytes[2 * kCutChunks] = {};
  alignas(64) uint16_t shifts[kCutChunks] = {};
  alignas(64) uint16_t masks[kCutChunks] = {};

  // The argument `length` is the number of 16-bit elements that the cutter writes for each tap, one for each chunk. If
  // `length` is one more than the number of chunks, the last element is 0, a place for the tap's parity.
  constexpr ChunkCutter(int32_t tap_words, int32_t length) {
    for (int32_t i = 0, chunk = 0, first_byte = 0; i < kCutChunks; ++i, ++chunk) {
      if (chunk == length) chunk = 0, first_byte += tap_words * static_cast<int32_t>(sizeof(uint32_t));
      const int32_t bit = chunk * kChunkBits, bits = Max(Min(tap_words * kBitsPerWord - bit, kChunkBits), 0);
      bytes[2 * i] = static_cast<uint8_t>(first_byte + bit / 8);
      bytes[2 * i + 1] = static_cast<uint8_t>(bytes[2 * i] + 1);
      // The shift multiplies a chunk's value by 64, the size of a table in bytes.
      shifts[i] = static_cast<uint16_t>(kChunkBits - bit % 8);
      masks[i] = static_cast<uint16_t>(((1 << bits) - 1) * kTableBytes);
    }
  }

  __attribute__((always_inline)) __m512i operator()(__m512i words) const {
    const __m512i pairs = _mm512_permutexvar_epi8(_mm512_load_si512(bytes), words);
    return _mm512_and_si512(_mm512_sllv_epi16(pairs, _mm512_load_si512(shifts)), _mm512_load_si512(masks));
  }
};

__mmask32 ChunkParities(__m512i offsets) {
  return _mm512_test_epi16_mask(_mm512_popcnt_epi16(offsets), _mm512_set1_epi16(1));
}

int32_t CountBits(__mmask32 bits) { return __builtin_popcount(bits); }

void StageLongTaps(const uint32_t* words, int64_t taps, int32_t tap_words, uint16_t* staged) {
  static constexpr ChunkCutter kCutter(kCutWords, kCutChunks);
  const int32_t cuts = Chunks(tap_words) / kCutChunks, chunks_left = Chunks(tap_words) % kCutChunks;
  const auto are_words_left = static_cast<__mmask16>(FirstBits(tap_words - cuts * kCutWords));
  for (; taps > 0; --taps) {
    int32_t parity = 0;
    for (int32_t cut = 0; cut < cuts; ++cut, words += kCutWords, staged += kCutChunks) {
      const __m512i offsets = kCutter(_mm512_maskz_loadu_epi32(FirstBits(kCutWords), words));
      _mm512_storeu_si512(staged, offsets);
      parity += CountBits(ChunkParities(offsets));
    }
    const __m512i offsets = kCutter(_mm512_maskz_loadu_epi32(are_words_left, words));
    _mm512_mask_storeu_epi16(staged, FirstBits(chunks_left), offsets);
    staged[chunks_left] = static_cast<uint16_t>(parity + CountBits(ChunkParities(offsets)));
    words += tap_words - cuts * kCutWords;
    staged += chunks_left + 1;
  }
}

// Converts `taps` taps to table offsets, if a tap has so few words that one vector has the offsets of several taps.
template <int32_t kTapWords>
void StageShortTaps(const uint32_t* words, int64_t taps, int32_t, uint16_t* staged) {
  constexpr int32_t kLength = StagedLength(kTapWords), kTaps = kCutChunks / kLength;
  static constexpr ChunkCutter kCutter(kTapWords, kLength);
  const auto stage = [&](int32_t count) __attribute__((always_inline)) {
    const __m512i offsets =
        kCutter(_mm512_maskz_loadu_epi32(static_cast<__mmask16>(FirstBits(count * kTapWords)), words));
    _mm512_mask_storeu_epi16(staged, FirstBits(count * kLength), offsets);
    const __mmask32 parity = ChunkParities(offsets);
    for (int32_t tap = 0; tap < count; ++tap, staged += kLength) {
      staged[kLength - 1] = static_cast<uint16_t>(CountBits(parity >> (tap * kLength) & FirstBits(kLength - 1)));
    }
    words += count * kTapWords;
  };
  for (; taps >= kTaps; taps -= kTaps) stage(kTaps);
  if (taps > 0) stage(static_cast<int32_t>(taps));
}

void Stage(const uint32_t* words, int64_t taps, int32_t tap_words, uint8_t* staged) {
  constexpr decltype(&StageLongTaps) kStageShortTaps[] = {StageShortTaps<1>, StageShortTaps<2>, StageShortTaps<3>,
                                                          StageShortTaps<4>, StageShortTaps<5>};
  constexpr int32_t kShortTapWords = sizeof(kStageShortTaps) / sizeof(*kStageShortTaps);
  static_assert(StagedLength(kShortTapWords) <= kCutChunks && StagedLength(kShortTapWords + 1) > kCutChunks, "");
  const auto stage_taps = tap_words <= kShortTapWords ? kStageShortTaps[tap_words - 1] : StageLongTaps;
  stage_taps(words, taps, tap_words, reinterpret_cast<uint16_t*>(staged));
}

// Returns the number of vectors of 64 channels that `channels` channels fill. For each such vector, the packed weights
// have 64 compensations (int32), and then bytes with the layout [taps][chunks][64]. A dot product is depth +
// compensation + 4 * E + 2 * parity(window), where E is the sum of the window's lookups. The compensation is -12 *
// chunks - 2 * parity(filter). A chunk is six bits of a tap, and parity() is the number of chunks with odd parity.
int32_t Vectors(int32_t channels) { return (channels + kVectorChannels - 1) / kVectorChannels; }

size_t VectorBytes(int32_t taps, int32_t tap_words) {
  return kCompensationBytes + static_cast<size_t>(taps) * static_cast<size_t>(Chunks(tap_words)) * kVectorChannels;
}

size_t PackedWeightsBytes(int32_t channels, int32_t taps, int32_t tap_words) {
  return static_cast<size_t>(Vectors(channels)) * VectorBytes(taps, tap_words);
}

// Returns the position of channel `lane` in a vector of bytes. The order is such that every fourth byte belongs to the
// same 16 channels, whose int32 dot products make one vector.
constexpr int32_t ByteOfChannel(int32_t lane) { return lane % 16 * 4 + lane / 16; }

int32_t ChunkOf(const uint32_t* words, int32_t tap_words, int32_t chunk) {
  const int32_t bit = chunk * kChunkBits, word = bit / kBitsPerWord;
  const uint64_t high = word + 1 < tap_words ? words[word + 1] : 0;
  return static_cast<int32_t>((high << kBitsPerWord | words[word]) >> (bit % kBitsPerWord) & 63u);
}

void PackWeights(const uint32_t* filter, int32_t channels, int32_t taps, int32_t tap_words, uint8_t* packed) {
  const int32_t chunks = Chunks(tap_words);
  for (int32_t channel = 0; channel < channels; ++channel) {
    const int32_t lane = channel % kVectorChannels;
    uint8_t* const vector = packed + static_cast<size_t>(channel / kVectorChannels) * VectorBytes(taps, tap_words);
    uint8_t* weight = vector + kCompensationBytes + ByteOfChannel(lane);
    int32_t parity = 0;
    for (int32_t tap = 0; tap < taps; ++tap, filter += tap_words) {
      for (int32_t chunk = 0; chunk < chunks; ++chunk, weight += kVectorChannels) {
        const int32_t value = ChunkOf(filter, tap_words, chunk);
        *weight = static_cast<uint8_t>(value);
        parity += Parity(value);
      }
    }
    reinterpret_cast<int32_t*>(vector)[lane] = -2 * kChunkBits * taps * chunks - 2 * parity;
  }
}

}  // namespace
}  // namespace litebnn
