/* Counters for 32 output channels (lanes) in bit planes: word p has bit p of every lane's counter. */
#ifndef LITEBNN_MICRO_PLANES_H
#define LITEBNN_MICRO_PLANES_H

#include "kernel.h"

/* The largest number of planes of a counter. Counts have 16 bits. Planes above those that a kernel keeps in registers
 * are added three at a time. */
enum { kMaxPlanes = 18 };

/* All bits of the result are bit `i` of `word`. */
#define LITEBNN_MASK(word, i) ((uint32_t)((int32_t)((word) << (31 - (i))) >> 31))

/* A full adder for each lane: a + b + c = 2 * high + low. `high` and `low` may be the variables of operands. */
#define LITEBNN_ADD(high, low, a, b, c)          \
  do {                                           \
    const uint32_t a_ = (a), b_ = (b), c_ = (c); \
    const uint32_t u_ = a_ ^ b_;                 \
    (high) = (a_ & b_) | (u_ & c_);              \
    (low) = u_ ^ c_;                             \
  } while (0)

/* Adds `n` carries, each with the value 2^first, to the counters' presets (initial values). Returns a word with the
 * bits of the lanes whose counters overflow. The number planes - first must be a multiple of 3. The carries are
 * overwritten, and so are up to kCarryRest words after them. */
uint32_t litebnn_overflows(uint32_t* carries, int32_t n, const uint32_t* presets, int32_t first, int32_t planes);

/* Adds carries as litebnn_overflows does, and stores the planes from `first` on in `sums`. */
void litebnn_add_carries(uint32_t* carries, int32_t n, const uint32_t* presets, int32_t first, int32_t planes,
                         uint32_t* sums);

/* Converts the planes of 32 lanes to 16-bit numbers, two in each word. For each j below 8, the numbers of the lanes j,
 * j + 16, j + 8 and j + 24 follow each other. The planes are overwritten. */
void litebnn_numbers(uint32_t* sums, int32_t planes, uint32_t* numbers);

#endif
