// The file makes the tables for dot products by table lookups, and defines the number of lookups whose sum fits a byte.
//
// A dot product is computed by table lookups, four bits (a nibble) at a time. Each value of an input nibble has a table
// of 16 bytes, one for each value of a filter nibble. One byte shuffle looks up one channel per byte.
//
// A table has the entries (matching bits - parity(input) + parity(filter)) / 2. The parity of a nibble is 1 if its
// number of ones is odd, otherwise 0. The dividend is even, so an entry is 0, 1 or 2. The parities of a window and of a
// filter are counted outside of the inner loop.
//
// Entries are at most 2, so seven of them add up to at most 14, which fits four bits. Therefore each byte of a table
// has the entries of two pixels. Two input nibbles, one of each pixel, select the table.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

constexpr int32_t kNibblesPerWord = kBitsPerWord / 4;
constexpr int32_t kGroupNibbles = 7;
// Sums in bytes are widened to 16 bits after this many nibbles. A byte can hold the sum of 127 entries, each at most 2.
// The constant is the largest even multiple of kGroupNibbles below this limit.
constexpr int32_t kMaxBlockNibbles = 126;

// A Piece is a sequence of a window's nibbles whose table offsets are stored one after the other. The member `first` is
// the index of the first of these offsets.
struct Piece {
  ptrdiff_t first;
  int32_t nibbles;
};

struct alignas(64) LookupTables {
  // The layout of `data` is [nibble of pixel 0 | nibble of pixel 1 << 4][nibble of the filter].
  uint8_t data[256][16];
};

constexpr int Popcount4(int bits) { return (bits & 1) + (bits >> 1 & 1) + (bits >> 2 & 1) + (bits >> 3 & 1); }

constexpr int Parity(int bits) { return Popcount4(bits) % 2; }

constexpr int HalfAgreement(int input, int filter) {
  return (4 - Popcount4(input ^ filter) - Parity(input) + Parity(filter)) / 2;
}

constexpr LookupTables MakeLookupTables() {
  LookupTables tables = {};
  for (int pair = 0; pair < 256; ++pair) {
    for (int filter = 0; filter < 16; ++filter) {
      tables.data[pair][filter] =
          static_cast<uint8_t>(HalfAgreement(pair & 15, filter) | HalfAgreement(pair >> 4, filter) << 4);
    }
  }
  return tables;
}

constexpr LookupTables kLookupTables = MakeLookupTables();

}  // namespace
}  // namespace litebnn
