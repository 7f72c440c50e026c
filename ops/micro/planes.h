/* Counters of 32 lanes as planes, for the kernels that count in lanes. */
#ifndef LITEBNN_MICRO_PLANES_H
#define LITEBNN_MICRO_PLANES_H

#include "kernel.h"

/* The most planes of a counter. Counts have 16 bits, and planes above the first come in threes. */
enum { kMaxPlanes = 18 };

/* All bits of the result are bit `i` of `word`. */
#define LITEBNN_MASK(word, i) ((uint32_t)((int32_t)((word) << (31 - (i))) >> 31))

/* A full adder of lanes: a + b + c = 2 * high + low. `high` and `low` may be operands. */
#define LITEBNN_ADD(high, low, a, b, c)          \
  do {                                           \
    const uint32_t a_ = (a), b_ = (b), c_ = (c); \
    const uint32_t u_ = a_ ^ b_;                 \
    (high) = (a_ & b_) | (u_ & c_);              \
    (low) = u_ ^ c_;                             \
  } while (0)

/* Adds `n` carries with the value 2^first to the counters' presets; returns the lanes that overflow. Three divides
 * planes - first. The carries are overwritten, and up to kCarryRest words after them. */
uint32_t litebnn_overflows(uint32_t* carries, int32_t n, const uint32_t* presets, int32_t first, int32_t planes);

/* The same, and stores the planes from `first` on. */
void litebnn_add_carries(uint32_t* carries, int32_t n, const uint32_t* presets, int32_t first, int32_t planes,
                         uint32_t* sums);

/* Numbers of 16 bits from the planes of 32 lanes, two in a word: those of lanes j, j + 16, j + 8 and j + 24 for each j
 * below 8. The planes are overwritten. */
void litebnn_numbers(uint32_t* sums, int32_t planes, uint32_t* numbers);

#endif
