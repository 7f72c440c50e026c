// The loop in which AVX2 spends its time; also timed by itself by the benchmark.
//
// A dot product is looked up four bits at a time: for each value of a nibble of a pixel's input there is a table of 16
// bytes, the popcount of its XOR with each nibble that a filter can have, and one byte shuffle looks up 32 channels. A
// sum of three lookups is at most 12 and fits four bits, so that one byte serves two pixels: the table is chosen by the
// nibbles of both, and every shuffle does 2 x 4 x 32 binary multiply-adds.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace litebnn {
// Nothing in here may be shared with files compiled for other CPUs.
namespace {

constexpr int32_t kVectorChannels = 32;
// Nibbles between two moves of the byte sums to 16 bit ones. 4 * 60 = 240 is what the overlapping fields of
// PairSums::odd hold.
constexpr int32_t kBlockNibbles = 60;

struct alignas(64) LookupTables {
  // [nibble of pixel 0 | nibble of pixel 1 << 4][nibble of the filter]
  uint8_t data[256][16];
};

constexpr int Popcount4(int bits) { return (bits & 1) + (bits >> 1 & 1) + (bits >> 2 & 1) + (bits >> 3 & 1); }

constexpr LookupTables MakeLookupTables() {
  LookupTables tables = {};
  for (int pair = 0; pair < 256; ++pair) {
    for (int filter = 0; filter < 16; ++filter) {
      tables.data[pair][filter] =
          static_cast<uint8_t>(Popcount4((pair & 15) ^ filter) | Popcount4((pair >> 4) ^ filter) << 4);
    }
  }
  return tables;
}

constexpr LookupTables kLookupTables = MakeLookupTables();

// Popcount sums of two pixels and kVectors * 32 channels.
template <int kVectors>
struct PairSums {
  // even: pixel 0, one byte a channel. odd: 16 bits with pixel 1 from bits 0 and 8 upwards, and pixel 0 of the odd
  // bytes on top of it from bit 4 upwards. Taking that off at the end spares the loop a mask.
  __m256i even[kVectors], odd[kVectors];

  PairSums() {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) even[v] = odd[v] = _mm256_setzero_si256();
  }

  // `offsets`: of each nibble's table. `weights`: [nibbles][kVectors][32 channels], a nibble a byte. `nibbles` is even.
  void Add(const uint16_t* offsets, const uint8_t* weights, int32_t nibbles) {
    const auto* filter = reinterpret_cast<const __m256i*>(weights);
    int32_t left = nibbles;
    // Twice three: with few vectors the loop's own instructions count.
    for (; left >= 6; left -= 6, offsets += 6, filter += 6 * kVectors) {
      AddGroup<3>(offsets, filter);
      AddGroup<3>(offsets + 3, filter + 3 * kVectors);
    }
    for (; left >= 2; left -= 2, offsets += 2, filter += 2 * kVectors) AddGroup<2>(offsets, filter);
  }

 private:
  static __m256i Table(uint16_t offset) {
    const auto* tables = reinterpret_cast<const uint8_t*>(kLookupTables.data);
    return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(tables + offset)));
  }

  // At most three nibbles.
  template <int kNibbles>
  void AddGroup(const uint16_t* offsets, const __m256i* filter) {
    const __m256i mask = _mm256_set1_epi8(0x0F);
    __m256i tables[kNibbles];
#pragma GCC unroll 3
    for (int i = 0; i < kNibbles; ++i) tables[i] = Table(offsets[i]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      __m256i sum = _mm256_shuffle_epi8(tables[0], filter[v]);
#pragma GCC unroll 3
      for (int i = 1; i < kNibbles; ++i) {
        sum = _mm256_add_epi8(sum, _mm256_shuffle_epi8(tables[i], filter[i * kVectors + v]));
      }
      even[v] = _mm256_add_epi8(even[v], _mm256_and_si256(sum, mask));
      odd[v] = _mm256_add_epi16(odd[v], _mm256_srli_epi16(sum, 4));
      // Keeps the compiler from starting on the next channels before these are done: it would run out of registers.
      if (kVectors > 2) __asm__ volatile("" : "+x"(even[v]), "+x"(odd[v]));
    }
  }
};

}  // namespace
}  // namespace litebnn
