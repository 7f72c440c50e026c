// The inner loop of AVX2. A byte shuffle does table lookups (lookup_tables.h) for 32 channels at once. One shuffle
// covers 4 bits of 2 pixels for 32 channels, which is 256 binary multiply-adds. bench/kernels also times the loop
// alone.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/isa/shared/lookup_tables.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

constexpr int32_t kVectorChannels = 32;
// The offset from one lookup table to the next, in units of two bytes. In this unit, sixteen tables take 128, which
// still fits an unsigned byte, as the instruction that computes offsets requires.
constexpr int32_t kTableStride = 8;

alignas(32) constexpr uint32_t kNibbleMask[8] = {0x0F0F0F0F, 0x0F0F0F0F, 0x0F0F0F0F, 0x0F0F0F0F,
                                                 0x0F0F0F0F, 0x0F0F0F0F, 0x0F0F0F0F, 0x0F0F0F0F};

// The loop is in assembly, because a tile needs all 16 registers and compilers spill some. Operands %0 to %3 are
// TileSums::even, %4 to %7 are TileSums::odd. Registers ymm8 to ymm11 are the sums of a group of at most seven nibbles.
// Registers ymm12 to ymm15 hold tables, weights, values from tables and a mask.
// clang-format off
#define LITEBNN_TABLE(pair, index, i, to)                  \
  "movzwl 2*" #i "(%[offsets" #pair "]), %%e" #index "\n"   \
  "vbroadcasti128 (%[tables],%%r" #index ",2), %%ymm" #to "\n"
#define LITEBNN_WEIGHTS(at) "vmovdqa " at "(%[weights]), %%ymm14\n"
// Both macros look up one value. LITEBNN_START sets a sum to this value, and LITEBNN_ADD adds the value to a
// sum. `spare` is overwritten, and may be the register of the table.
#define LITEBNN_START(sum, weights, table, spare) "vpshufb " weights ", %%ymm" #table ", %%ymm" #sum "\n"
#define LITEBNN_ADD(sum, weights, table, spare)             \
  "vpshufb " weights ", %%ymm" #table ", %%ymm" #spare "\n" \
  "vpaddb %%ymm" #spare ", %%ymm" #sum ", %%ymm" #sum "\n"

// The macros look up nibble i of each pixel of a tile. The number at the end of a macro's name is the number of pixel
// pairs in the tile: 1, 2 or 4.
#define LITEBNN_NIBBLE_OF_1(DO, i)                                             \
  LITEBNN_TABLE(0, ax, i, 12)                                                  \
  DO(8, #i "*128(%[weights])", 12, 13) DO(9, #i "*128+32(%[weights])", 12, 13) \
  DO(10, #i "*128+64(%[weights])", 12, 13) DO(11, #i "*128+96(%[weights])", 12, 12)
#define LITEBNN_NIBBLE_OF_2(DO, i)                                                   \
  LITEBNN_TABLE(0, ax, i, 12) LITEBNN_TABLE(1, cx, i, 13)                            \
  LITEBNN_WEIGHTS(#i "*64") DO(8, "%%ymm14", 12, 15) DO(10, "%%ymm14", 13, 14)       \
  LITEBNN_WEIGHTS(#i "*64+32") DO(9, "%%ymm14", 12, 12) DO(11, "%%ymm14", 13, 13)
#define LITEBNN_NIBBLE_OF_4(DO, i)                         \
  LITEBNN_WEIGHTS(#i "*32")                                \
  LITEBNN_TABLE(0, ax, i, 12) DO(8, "%%ymm14", 12, 12)     \
  LITEBNN_TABLE(1, cx, i, 13) DO(9, "%%ymm14", 13, 13)     \
  LITEBNN_TABLE(2, ax, i, 12) DO(10, "%%ymm14", 12, 12)    \
  LITEBNN_TABLE(3, cx, i, 13) DO(11, "%%ymm14", 13, 13)

#define LITEBNN_ADVANCE_OF_1(i) "add $2*" #i ", %[offsets0]\n add $128*" #i ", %[weights]\n"
#define LITEBNN_ADVANCE_OF_2(i) \
  "add $2*" #i ", %[offsets0]\n add $2*" #i ", %[offsets1]\n add $64*" #i ", %[weights]\n"
#define LITEBNN_ADVANCE_OF_4(i)                             \
  "add $2*" #i ", %[offsets0]\n add $2*" #i ", %[offsets1]\n" \
  "add $2*" #i ", %[offsets2]\n add $2*" #i ", %[offsets3]\n add $32*" #i ", %[weights]\n"

// The macro adds the sums of a group of nibbles to the sums `even` and `odd` of the window. MASK is a register if the
// tile leaves one free, otherwise a constant in memory.
#define LITEBNN_FOLD(sum, even, odd, MASK)                                             \
  "vpsrlw $4, %%ymm" #sum ", %%ymm12\n vpand " MASK ", %%ymm" #sum ", %%ymm" #sum "\n" \
  "vpaddw %%ymm12, %" #odd ", %" #odd "\n vpaddb %%ymm" #sum ", %" #even ", %" #even "\n"
#define LITEBNN_FOLD_GROUP(MASK)                            \
  LITEBNN_FOLD(8, 0, 4, MASK) LITEBNN_FOLD(9, 1, 5, MASK) \
  LITEBNN_FOLD(10, 2, 6, MASK) LITEBNN_FOLD(11, 3, 7, MASK)
#define LITEBNN_MASK_OF_1 "%%ymm15"
#define LITEBNN_MASK_OF_2 "%[mask]"
#define LITEBNN_MASK_OF_4 "%[mask]"

// The macro adds up the lookups of a tile of `pairs` pixel pairs for one piece (a range of nibbles) of the windows.
// Groups of seven nibbles come first, then the remaining nibbles.
#define LITEBNN_NIBBLES(pairs) \
  LITEBNN_NIBBLES_BY(LITEBNN_NIBBLE_OF_##pairs, LITEBNN_ADVANCE_OF_##pairs, LITEBNN_MASK_OF_##pairs)
#define LITEBNN_NIBBLES_BY(NIBBLE, ADVANCE, MASK)                                                             \
  __asm__("vmovdqa %[mask], %%ymm15\n sub $7, %[nibbles]\n jl 2f\n"                                           \
          "1:\n"                                                                                              \
          NIBBLE(LITEBNN_START, 0) NIBBLE(LITEBNN_ADD, 1) NIBBLE(LITEBNN_ADD, 2) NIBBLE(LITEBNN_ADD, 3)       \
          NIBBLE(LITEBNN_ADD, 4) NIBBLE(LITEBNN_ADD, 5) NIBBLE(LITEBNN_ADD, 6)                                \
          LITEBNN_FOLD_GROUP(MASK) ADVANCE(7)                                                               \
          "sub $7, %[nibbles]\n jge 1b\n"                                                                     \
          "2: add $7, %[nibbles]\n jz 5f\n"                                                                   \
          NIBBLE(LITEBNN_START, 0)                                                                            \
          "jmp 4f\n"                                                                                          \
          "3:\n" ADVANCE(1) NIBBLE(LITEBNN_ADD, 0)                                                            \
          "4: dec %[nibbles]\n jnz 3b\n"                                                                      \
          LITEBNN_FOLD_GROUP(MASK) ADVANCE(1)                                                               \
          "5:\n"                                                                                              \
          : "+x"(even0), "+x"(even1), "+x"(even2), "+x"(even3), "+x"(odd0), "+x"(odd1), "+x"(odd2),           \
            "+x"(odd3), [weights] "+r"(weights),                                                              \
            [offsets0] "+r"(offsets0), [offsets1] "+r"(offsets1), [offsets2] "+r"(offsets2),                        \
            [offsets3] "+r"(offsets3), [nibbles] "+r"(nibbles)                                                  \
          : [tables] "r"(kLookupTables.data), [mask] "m"(kNibbleMask)                                         \
          : "rax", "rcx", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory")
// clang-format on

// TileSums has the sums of table lookups of kPairs pixel pairs in 4 / kPairs vectors of 32 channels.
template <int kPairs>
struct TileSums {
  static constexpr int kVectors = 4 / kPairs;
  // The sums of pair p and vector v are at index p * kVectors + v. `even` has the sums of pixel 0, one byte per
  // channel. Each 16-bit element of `odd` has two sums of pixel 1, at bits 0 and 8, plus 16 times the odd byte
  // of `even`. These multiples of 16 are subtracted after the loop, which is faster than a mask in the loop.
  __m256i even[4], odd[4];

  // The array `offsets` has one pointer per pair of pixels, to the pair's table offsets. A piece is a range of these
  // offsets. The weights have the layout [nibbles of all pieces][kVectors][32 channels], and each byte holds one
  // nibble.
  TileSums(const uint16_t* const* offsets, const Piece* pieces, int32_t count, const uint8_t* weights) {
    // The sums are local variables of the loop, because compilers would keep members in memory instead of registers.
    __m256i even0 = _mm256_setzero_si256(), even1 = even0, even2 = even0, even3 = even0;
    __m256i odd0 = even0, odd1 = even0, odd2 = even0, odd3 = even0;
    for (int32_t piece = 0; piece < count; ++piece) {
      const ptrdiff_t first = pieces[piece].first;
      int64_t nibbles = pieces[piece].nibbles;
      const uint16_t *offsets0 = offsets[0] + first, *offsets1 = offsets[1 % kPairs] + first,
                     *offsets2 = offsets[2 % kPairs] + first, *offsets3 = offsets[3 % kPairs] + first;
      if (kPairs == 1) {
        LITEBNN_NIBBLES(1);
      } else if (kPairs == 2) {
        LITEBNN_NIBBLES(2);
      } else {
        LITEBNN_NIBBLES(4);
      }
    }
    even[0] = even0, even[1] = even1, even[2] = even2, even[3] = even3;
    odd[0] = odd0, odd[1] = odd1, odd[2] = odd2, odd[3] = odd3;
  }
};

}  // namespace
}  // namespace litebnn
