// The file declares the functions of sum_lookups.S. Each of them computes the sums of table lookups for a tile: some
// pairs of pixels and some vectors of 16 channels.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "kernels/isa/shared/lookup_tables.h"

namespace litebnn {

using SumLookupsCode = void();

// The first three functions are the inner loops; their names end in the number of pixel pairs. The other three are
// endings: at its end, an inner loop jumps to one of them, which stores the sums. The endings store ByteSums, store
// WideSums, or add to stored WideSums. Only SumLookups may call the inner loops.
extern "C" SumLookupsCode litebnn_sum_lookups_1, litebnn_sum_lookups_2, litebnn_sum_lookups_4;
extern "C" SumLookupsCode litebnn_store_sums, litebnn_start_wide_sums, litebnn_add_wide_sums;

// UnpackWeights is the type of the functions that unpack the weights of a tile. Their names end in the number of
// vectors of 16 channels. `nibbles` is even and above 0.
using UnpackWeights = void(const uint8_t* packed, int32_t nibbles, uint8_t* weights);
extern "C" UnpackWeights litebnn_unpack_weights_2, litebnn_unpack_weights_4, litebnn_unpack_weights_8;

namespace {

constexpr int32_t kVectorChannels = 16;
constexpr int kTileSums = 8;

// ByteSums has the lookup sums of two pixels for one vector of channels. Each sum has 8 bits.
struct ByteSums {
  uint8x16_t both;  // sums of pixel 0 plus 16 times those of pixel 1, modulo 256
  uint8x16_t pixel1;

  uint8x16_t Pixel0() const { return vmlsq_u8(both, pixel1, vdupq_n_u8(16)); }
};

// WideSums has the lookup sums of two pixels for one vector of channels, as 16-bit numbers that are multiplied by four.
struct WideSums {
  uint16x8_t pixels[2][2];
};

// Sums the lookups of one tile over `count` pieces (ranges of nibbles). `pairs` has a pointer for each pixel pair, to
// its table offsets in bytes from the first table. The layout of `weights` is [nibbles of all
// pieces][vectors][kVectorChannels], one nibble a byte.
inline void SumLookups(SumLookupsCode* loop, SumLookupsCode* ending, const uint32_t* const* pairs,
                       const uint8_t* weights, const Piece* pieces, int32_t count, void* sums) {
  static_assert(sizeof(Piece) == 16 && offsetof(Piece, nibbles) == 8, "as sum_lookups.S reads it");
  register const uint32_t* const* x0 __asm__("x0") = pairs;
  register const uint8_t* x1 __asm__("x1") = weights;
  register const Piece* x2 __asm__("x2") = pieces;
  register int64_t x3 __asm__("x3") = count;
  register const uint8_t* x4 __asm__("x4") = kLookupTables.data[0];
  register void* x5 __asm__("x5") = sums;
  register SumLookupsCode* x20 __asm__("x20") = ending;
  __asm__ volatile("blr %[loop]"
                   : "+r"(x1), "+r"(x2), "+r"(x3), "+r"(x5)
                   : "r"(x0), "r"(x4), "r"(x20), [loop] "r"(loop)
                   : "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x19", "x30", "v0",
                     "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15",
                     "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29",
                     "v30", "v31", "cc", "memory");
}

}  // namespace
}  // namespace litebnn
