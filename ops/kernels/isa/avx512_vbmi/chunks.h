// Words cut into chunks of six bits: staged input, which is where the chunks' tables are, and weights. A tap's words
// are cut by themselves, so that windows share staged taps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa/avx2/intrinsics.h"
#include "kernels/isa/avx512_vbmi/inner_loop.h"
#include "kernels/isa/shared/arithmetic.h"
#include "kernels/kernels.h"

namespace litebnn {
// Nothing in here may be shared with files compiled for other CPUs.
namespace {

// A vector has 32 offsets of 16 bits; as many chunks are six whole words.
constexpr int32_t kStepChunks = 32;
constexpr int32_t kStepWords = 6;

int32_t Chunks(int32_t tap_words) { return (tap_words * kBitsPerWord + kChunkBits - 1) / kChunkBits; }

// A staged tap: the offsets of its chunks among the tables of a pixel, then the number of odd chunks.
int32_t StagedLength(int32_t tap_words) { return Chunks(tap_words) + 1; }
size_t StagedBytes(int32_t tap_words) { return static_cast<size_t>(StagedLength(tap_words)) * sizeof(uint16_t); }

__mmask32 FirstBits(int32_t count) { return static_cast<__mmask32>((uint64_t{1} << count) - 1); }

// Cuts the words of some taps at once into offsets.
struct ChunkCutter {
  __m512i bytes, shifts, masks;

  // The offsets of a tap begin `length` after those of the tap before; the last of them may be for no chunk.
  ChunkCutter(int32_t tap_words, int32_t length) {
    alignas(64) uint8_t byte[2 * kStepChunks];
    alignas(64) uint16_t shift[kStepChunks], mask[kStepChunks];
    for (int32_t i = 0, chunk = 0, first_byte = 0; i < kStepChunks; ++i, ++chunk) {
      if (chunk == length) chunk = 0, first_byte += tap_words * static_cast<int32_t>(sizeof(uint32_t));
      const int32_t bit = chunk * kChunkBits, bits = Max(Min(tap_words * kBitsPerWord - bit, kChunkBits), 0);
      byte[2 * i] = static_cast<uint8_t>(first_byte + bit / 8);
      byte[2 * i + 1] = static_cast<uint8_t>(byte[2 * i] + 1);
      // Offsets count tables of 64 bytes.
      shift[i] = static_cast<uint16_t>(kChunkBits - bit % 8);
      mask[i] = static_cast<uint16_t>(((1 << bits) - 1) * kTableBytes);
    }
    bytes = _mm512_load_si512(byte);
    shifts = _mm512_load_si512(shift);
    masks = _mm512_load_si512(mask);
  }

  __m512i operator()(__m512i words) const {
    return _mm512_and_si512(_mm512_sllv_epi16(_mm512_permutexvar_epi8(bytes, words), shifts), masks);
  }
};

__mmask32 OddChunks(__m512i offsets) {
  return _mm512_test_epi16_mask(_mm512_popcnt_epi16(offsets), _mm512_set1_epi16(1));
}

int32_t CountBits(__mmask32 bits) { return __builtin_popcount(bits); }

void StageLongTaps(const uint32_t* words, int64_t taps, int32_t tap_words, uint16_t* staged) {
  const int32_t chunks = Chunks(tap_words);
  const ChunkCutter cutter(kStepWords, kStepChunks);
  for (; taps > 0; --taps, words += tap_words, ++staged) {
    int32_t odd = 0;
    for (int32_t word = 0, chunk = 0; chunk < chunks; word += kStepWords, chunk += kStepChunks, staged += kStepChunks) {
      const auto is_word = static_cast<__mmask16>(FirstBits(Min(tap_words - word, kStepWords)));
      const __m512i offsets = cutter(_mm512_maskz_loadu_epi32(is_word, words + word));
      _mm512_mask_storeu_epi16(staged, FirstBits(Min(chunks - chunk, kStepChunks)), offsets);
      odd += CountBits(OddChunks(offsets));
    }
    staged += chunks - (chunks + kStepChunks - 1) / kStepChunks * kStepChunks;
    *staged = static_cast<uint16_t>(odd);
  }
}

// Several taps fill a vector.
void StageShortTaps(const uint32_t* words, int64_t taps, int32_t tap_words, uint16_t* staged) {
  const int32_t length = StagedLength(tap_words), most = kStepChunks / length;
  const ChunkCutter cutter(tap_words, length);
  while (taps > 0) {
    const auto count = static_cast<int32_t>(Min<int64_t>(taps, most));
    const auto is_word = static_cast<__mmask16>(FirstBits(count * tap_words));
    const __m512i offsets = cutter(_mm512_maskz_loadu_epi32(is_word, words));
    _mm512_mask_storeu_epi16(staged, FirstBits(count * length), offsets);
    const __mmask32 odd = OddChunks(offsets);
    for (int32_t tap = 0; tap < count; ++tap, staged += length) {
      staged[length - 1] = static_cast<uint16_t>(CountBits(odd >> (tap * length) & FirstBits(length - 1)));
    }
    words += count * tap_words;
    taps -= count;
  }
}

void Stage(const uint32_t* words, int64_t taps, int32_t tap_words, uint8_t* staged) {
  auto* const offsets = reinterpret_cast<uint16_t*>(staged);
  StagedLength(tap_words) <= kStepChunks ? StageShortTaps(words, taps, tap_words, offsets)
                                         : StageLongTaps(words, taps, tap_words, offsets);
}

// Weights: for each vector of 64 channels its int32 excesses, then [taps][chunks][64] bytes. With E, what a dot
// product's lookups sum up to, and the odd chunks of its window and filter, it is depth + excess + 4 * E +
// 2 * odd(window), where the excess is -12 * chunks - 2 * odd(filter).
constexpr size_t kExcessBytes = kVectorChannels * sizeof(int32_t);

int32_t Vectors(int32_t channels) { return (channels + kVectorChannels - 1) / kVectorChannels; }

size_t VectorBytes(int32_t taps, int32_t tap_words) {
  return kExcessBytes + static_cast<size_t>(taps) * static_cast<size_t>(Chunks(tap_words)) * kVectorChannels;
}

size_t PackedWeightsBytes(int32_t channels, int32_t taps, int32_t tap_words) {
  return static_cast<size_t>(Vectors(channels)) * VectorBytes(taps, tap_words);
}

// A vector of int32 has the channels of every fourth byte.
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
    uint8_t* weight = vector + kExcessBytes + ByteOfChannel(lane);
    int32_t odd = 0;
    for (int32_t tap = 0; tap < taps; ++tap, filter += tap_words) {
      for (int32_t chunk = 0; chunk < chunks; ++chunk, weight += kVectorChannels) {
        const int32_t value = ChunkOf(filter, tap_words, chunk);
        *weight = static_cast<uint8_t>(value);
        odd += IsOdd(value);
      }
    }
    reinterpret_cast<int32_t*>(vector)[lane] = -2 * kChunkBits * taps * chunks - 2 * odd;
  }
}

}  // namespace
}  // namespace litebnn
