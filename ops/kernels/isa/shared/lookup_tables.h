// Dot products by table lookups: the tables, and how many lookups a byte can sum up.
//
// A dot product is looked up four bits at a time: for each value of a nibble of a pixel's input there is a table of 16
// bytes, one for each nibble that a filter can have, and one byte shuffle looks up a channel with each of its bytes.
// What is looked up is not the number of bits that agree, 0 to 4, but with o(n) = 1 for a nibble of odd parity and 0
// for others
//
//   (agreeing bits - o(input) + o(filter)) / 2
//
// which is 0, 1 or 2, as the bracket is even. How many nibbles of a window and of a filter are odd is counted outside
// of the loop. A sum of seven lookups is at most 14 and fits four bits, so that one byte serves two pixels: the table
// is chosen by the nibbles of both.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace litebnn {
// Every ISA's file has its own copy, compiled for its own CPU.
namespace {

constexpr int32_t kNibblesPerWord = kBitsPerWord / 4;
constexpr int32_t kGroupNibbles = 7;
// Nibbles between two moves of the byte sums to 16 bit ones: a byte holds 2 * 127. An even number of whole groups.
constexpr int32_t kMaxBlockNibbles = 126;

// Nibbles whose tables' offsets lie side by side, from the one numbered `first` on.
struct Piece {
  ptrdiff_t first;
  int32_t nibbles;
};

struct alignas(64) LookupTables {
  // [nibble of pixel 0 | nibble of pixel 1 << 4][nibble of the filter]
  uint8_t data[256][16];
};

constexpr int Popcount4(int bits) { return (bits & 1) + (bits >> 1 & 1) + (bits >> 2 & 1) + (bits >> 3 & 1); }

constexpr int IsOdd(int bits) { return Popcount4(bits) % 2; }

constexpr int HalfAgreement(int input, int filter) {
  return (4 - Popcount4(input ^ filter) - IsOdd(input) + IsOdd(filter)) / 2;
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
