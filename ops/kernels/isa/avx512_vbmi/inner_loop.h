// The file has the inner loop of AVX-512 with VBMI. bench/kernels also times the loop alone.
//
// A dot product is computed by table lookups for chunks of six bits. Each value of an input chunk has a table of 64
// bytes, one for each value of a filter chunk. One byte permutation looks up 64 channels.
//
// An entry is half the number of matching bits of an input chunk and a filter chunk, after a compensation for their
// parities (shared/lookup_tables.h). An entry is a number from 0 to 3, which takes two bits, so a byte serves four
// pixels. With the combined table of four pixels, one permutation does 4 x 6 x 64 binary multiply-adds.
//
// The entries of four pixels, two bits each, fill a byte and leave no room for a sum. Full adders therefore count how
// many of the looked-up vectors have a 1 at each bit position. A full adder is two ternary logic instructions. The
// first full adder adds two looked-up vectors to the ones digits of all counts, which gives a vector of carries.
// Another full adder adds two such vectors to the twos digits, and so on. After sixteen chunks the counts are unpacked
// and added.
//
// If there are two adjacent windows, each loaded vector of weights serves both. The weights of many channels come from
// the L2 cache, whose loads are slower than the lookups.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa/avx2/intrinsics.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

constexpr int32_t kVectorChannels = 64;
constexpr int32_t kTableBytes = 64;
constexpr int32_t kChunkBits = 6;
constexpr int32_t kLanePixels = 4;
constexpr int32_t kMaxVectors = 4;
constexpr int32_t kMaxWindows = 2;
// In packed weights, each vector of channels begins with this many bytes of compensations. A compensation is an int32
// per channel that is added to the channel's dot products (chunks.h).
constexpr size_t kCompensationBytes = kVectorChannels * sizeof(int32_t);
// The largest number of chunks whose lookups add up to a number that fits a byte. A lookup adds at most 3.
constexpr int32_t kMaxByteChunks = 255 / 3;
// The largest number of chunks whose lookups add up to a number that fits a ByteSums, which stores it as low + 16 *
// high. Sixteen lookups add at most 16 * 3, so they add at most 3 to the byte `high`.
constexpr int32_t kMaxChunks = 16 * kMaxByteChunks;

constexpr int Parity(int bits) { return __builtin_popcount(static_cast<unsigned>(bits)) % 2; }

constexpr int HalfAgreement(int input, int filter) {
  const int different = __builtin_popcount(static_cast<unsigned>(input ^ filter));
  return (kChunkBits - different - Parity(input) + Parity(filter)) / 2;
}

struct alignas(64) LookupTables {
  // The lookup tables of pixels 0 and 1, with the layout [pixel][input chunk][filter chunk]. Pixels 2 and 3 use the
  // same tables, but their entries are shifted left by four bits when the tables of four pixels are combined. Separate
  // tables for all four pixels would take twice the space in the L1 cache.
  uint8_t data[2][64 * kTableBytes];
};

constexpr LookupTables MakeLookupTables() {
  LookupTables tables = {};
  for (int input = 0; input < 64; ++input) {
    for (int filter = 0; filter < kTableBytes; ++filter) {
      const int value = HalfAgreement(input, filter);
      for (int p = 0; p < 2; ++p) tables.data[p][input * kTableBytes + filter] = static_cast<uint8_t>(value << 2 * p);
    }
  }
  return tables;
}

constexpr LookupTables kLookupTables = MakeLookupTables();

// Returns the matrix for GF2P8AFFINEQB that moves a pixel's two bits in each byte to bits `to` and `to` + 1.
constexpr long long PixelBits(int pixel, int to) {
  const uint64_t low = uint64_t{1} << (2 * pixel + 8 * (7 - to)), high = uint64_t{2} << (2 * pixel + 8 * (6 - to));
  return static_cast<long long>(low | high);
}

// Extracts a pixel's two bits from each byte and moves them to bits `to` and `to` + 1.
__attribute__((always_inline)) inline __m512i Unpack(__m512i bits, int pixel, int to) {
  return _mm512_gf2p8affine_epi64_epi8(bits, _mm512_set1_epi64(PixelBits(pixel, to)), 0);
}

// A ByteSums has the sums of table lookups of four pixels. The sum of a channel is low + 16 * high, with one byte
// in `low` and one in `high`. If there are two windows, the vectors of the first come before those of the second.
struct ByteSums {
  __m512i low[kLanePixels][kMaxVectors], high[kLanePixels][kMaxVectors];
};

// BitCounts has a 4-bit counter for each bit position of `kVectors` vectors. It counts the looked-up vectors that have
// a 1 at this position. bits[i] holds bit i of all counters.
template <int kVectors>
struct BitCounts {
  __m512i bits[4][kVectors];
};

template <int kLevel>
struct Level {
  static constexpr int kValue = kLevel;
};

// Looks up 2^kLevel chunks (groups of six bits) in the tables, and adds the entries to the lowest kLevel bits of the
// bit counters. `carries` gets the carries out of these bits.
template <int kLevel, int kVectors, typename Lookups>
__attribute__((always_inline)) inline void CountChunks(Lookups& lookups, BitCounts<kVectors>& counts,
                                                       __m512i* carries) {
  if constexpr (kLevel == 0) {
    lookups.Next(carries);
  } else {
    __m512i first[kVectors], second[kVectors];
    CountChunks<kLevel - 1>(lookups, counts, first);
    CountChunks<kLevel - 1>(lookups, counts, second);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      __m512i& sum = counts.bits[kLevel - 1][v];
      // The carry is the majority of the three input bits. It does not depend on the new sum, so the CPU computes carry
      // and sum in parallel.
      carries[v] = _mm512_ternarylogic_epi32(first[v], second[v], sum, 0xE8);
      sum = _mm512_ternarylogic_epi32(sum, first[v], second[v], 0x96);
    }
  }
}

// Adds `carries` to the bit counters, from bit kLevel on. Afterwards `carries` has the carries out of the highest bit.
template <int kLevel, int kVectors>
__attribute__((always_inline)) inline void AddCarries(__m512i* carries, BitCounts<kVectors>& counts) {
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 4
    for (int bit = kLevel; bit < 4; ++bit) {
      const __m512i sum = _mm512_xor_si512(counts.bits[bit][v], carries[v]);
      carries[v] = _mm512_and_si512(counts.bits[bit][v], carries[v]);
      counts.bits[bit][v] = sum;
    }
  }
}

// Looks up the weights of kChannelVectors vectors of 64 channels in the tables of kWindows adjacent windows. The result
// has kChannelVectors adjacent vectors for each window.
template <int kChannelVectors, int kWindows>
struct ChannelLookups {
  static constexpr int kVectors = kChannelVectors * kWindows;
  const uint8_t* const* runs;
  ptrdiff_t window_bytes;  // bytes from one window's tables to those of the next window
  const uint8_t* weights;
  ptrdiff_t vector_bytes;
  const uint8_t* tables = nullptr;

  void StartRun(int32_t run) { tables = runs[run]; }
  void Advance(int32_t chunks) {
    tables += chunks * kTableBytes;
    weights += chunks * kVectorChannels;
  }
  ChannelLookups Group(int group) const {
    ChannelLookups lookups = *this;
    lookups.weights += group * kChannelVectors * vector_bytes;
    return lookups;
  }
  static constexpr int SumOf(int group, int groups, int v) {
    return (v / kChannelVectors * groups + group) * kChannelVectors + v % kChannelVectors;
  }
  __attribute__((always_inline)) void Next(__m512i* found) {
    __m512i table[kWindows];
#pragma GCC unroll 2
    for (int window = 0; window < kWindows; ++window) {
      table[window] = _mm512_load_si512(tables + window * window_bytes);
    }
#pragma GCC unroll 2
    for (int v = 0; v < kChannelVectors; ++v) {
      const __m512i chunks = _mm512_load_si512(weights + v * vector_bytes);
#pragma GCC unroll 2
      for (int window = 0; window < kWindows; ++window) {
        found[window * kChannelVectors + v] = _mm512_permutexvar_epi8(chunks, table[window]);
      }
    }
    Advance(1);
  }
};

// GroupCounts has the 4-bit counters of kVectors result vectors. For each counter, `high` has the number of carries out
// of the counter, each of which stands for sixteen.
template <int kVectors>
struct GroupCounts {
  BitCounts<kVectors> counts;
  __m512i high[kLanePixels][kVectors];

  __attribute__((always_inline)) GroupCounts() {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      for (int bit = 0; bit < 4; ++bit) counts.bits[bit][v] = _mm512_setzero_si512();
      for (int p = 0; p < kLanePixels; ++p) high[p][v] = _mm512_setzero_si512();
    }
  }

  __attribute__((always_inline)) void AddHigh(const __m512i* carries, const __m512i* matrices) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 4
      for (int p = 0; p < kLanePixels; ++p) {
        const __m512i carried = _mm512_gf2p8affine_epi64_epi8(carries[v], matrices[p], 0);
        high[p][v] = _mm512_add_epi8(high[p][v], carried);
      }
    }
  }

  __attribute__((always_inline)) __m512i Low(int p, int v) const {
    __m512i low = Unpack(counts.bits[0][v], p, 0);
    low = _mm512_add_epi8(low, Unpack(counts.bits[1][v], p, 1));
    low = _mm512_add_epi8(low, Unpack(counts.bits[2][v], p, 2));
    return _mm512_add_epi8(low, Unpack(counts.bits[3][v], p, 3));
  }
};

// Sums the lookups of `run_count` runs (contiguous chunks), which together have at most kMaxChunks chunks. If they have
// at most kMaxByteChunks chunks, the sum is in `low` alone. Result vectors are summed in groups of two, because the
// registers hold the counters of only one group. After sixteen chunks of one group, the loop turns to the next group.
template <int kGroups, typename Lookups>
__attribute__((always_inline)) inline void SumLookups(Lookups lookups, int32_t run_count, int32_t run_chunks,
                                                      ByteSums& sums) {
  constexpr int kVectors = Lookups::kVectors;
  const bool fits_byte = run_count * run_chunks <= kMaxByteChunks;
  __m512i matrices[kLanePixels];
#pragma GCC unroll 4
  for (int p = 0; p < kLanePixels; ++p) {
    matrices[p] = _mm512_set1_epi64(fits_byte ? PixelBits(p, 4) : PixelBits(p, 0));
  }
  GroupCounts<kVectors> groups[kGroups];
  for (int32_t run = 0; run < run_count; ++run) {
    lookups.StartRun(run);
    const auto add = [&](auto level, bool carries_sixteen) __attribute__((always_inline)) {
      constexpr int kLevel = decltype(level)::kValue;
#pragma GCC unroll 2
      for (int group = 0; group < kGroups; ++group) {
        __m512i carries[kVectors];
        Lookups group_lookups = lookups.Group(group);
        CountChunks<kLevel>(group_lookups, groups[group].counts, carries);
        AddCarries<kLevel>(carries, groups[group].counts);
        if (carries_sixteen) groups[group].AddHigh(carries, matrices);
      }
      lookups.Advance(1 << kLevel);
    };
    // The chunks beyond a multiple of sixteen are added to the bit counters first. Fewer than sixteen chunks cannot
    // make the counters overflow.
    const auto add_left_over = [&](auto level) __attribute__((always_inline)) {
      if ((run_chunks >> decltype(level)::kValue & 1) != 0) add(level, run > 0);
    };
    add_left_over(Level<0>{});
    add_left_over(Level<1>{});
    add_left_over(Level<2>{});
    add_left_over(Level<3>{});
    for (int32_t sixteens = run_chunks / 16; sixteens > 0; --sixteens) add(Level<4>{}, true);
  }
#pragma GCC unroll 2
  for (int group = 0; group < kGroups; ++group) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int sum = Lookups::SumOf(group, kGroups, v);
#pragma GCC unroll 4
      for (int p = 0; p < kLanePixels; ++p) {
        const __m512i low = groups[group].Low(p, v), high = groups[group].high[p][v];
        sums.low[p][sum] = fits_byte ? _mm512_add_epi8(low, high) : low;
        sums.high[p][sum] = high;
      }
    }
  }
}

// Sums the lookups of kWindows windows over runs (sequences of contiguous tables), for kGroups * kVectors * 64
// channels. The distance from one vector's weights to the next is `vector_bytes` bytes, and from one window's tables to
// the next `window_bytes` bytes.
template <int kGroups, int kVectors, int kWindows>
__attribute__((noinline)) void SumChunks(const uint8_t* const* runs, int32_t run_count, int32_t run_chunks,
                                         ptrdiff_t window_bytes, const uint8_t* weights, ptrdiff_t vector_bytes,
                                         ByteSums& sums) {
  SumLookups<kGroups>(ChannelLookups<kVectors, kWindows>{runs, window_bytes, weights, vector_bytes}, run_count,
                      run_chunks, sums);
}

}  // namespace
}  // namespace litebnn
