/* What a kernel provides. The weights' orders are in litebnn_micro.h. */
#ifndef LITEBNN_MICRO_KERNEL_H
#define LITEBNN_MICRO_KERNEL_H

#include "litebnn_micro.h"

/* The blocks of one group at one pixel. */
typedef struct {
  const uint32_t* records; /* the window as `prepare` left it; the window itself if a kernel has no `prepare` */
  int32_t words;           /* of the window */
  const uint32_t* weights; /* of the first block */
  const uint32_t* presets; /* of the first block; null only for litebnn_popcount */
  int32_t planes;
  uint32_t* carries; /* carry_words words for each word of the window */
} litebnn_counting;

struct litebnn_kernel {
  int32_t lanes;
  int32_t record_words; /* for each three words of the window, rounded up to three; 0 without `prepare` */
  int32_t carry_words;  /* for each word of the window */
  int32_t weight_words; /* of a block, for each three words of the window */
  void (*prepare)(const uint32_t* window, int32_t words, uint32_t* records);
  /* Writes ceil(channels / 32) words of output bits. */
  void (*signs)(const litebnn_counting* counting, int32_t channels, uint32_t* output);
  /* Writes the counts of `lanes` channels of the block that `counting` begins with. */
  void (*counts)(const litebnn_counting* counting, int32_t* counts);
};

#define LITEBNN_WORDS(channels) (((channels) + 31) / 32)

/* All bits of the result are bit `i` of `word`. */
#define LITEBNN_MASK(word, i) ((uint32_t)((int32_t)((word) << (31 - (i))) >> 31))

/* A full adder of lanes: a + b + c = 2 * high + low. `high` and `low` may be operands. */
#define LITEBNN_ADD(high, low, a, b, c)               \
  do {                                                \
    const uint32_t a_ = (a), b_ = (b), c_ = (c);      \
    const uint32_t u_ = a_ ^ b_;                      \
    (high) = (a_ & b_) | (u_ & c_);                   \
    (low) = u_ ^ c_;                                  \
  } while (0)

/* Adds `n` carries with the value 2^first to the counters' presets; returns the lanes that overflow. */
uint32_t litebnn_overflows(uint32_t* carries, int32_t n, const uint32_t* presets, int32_t first, int32_t planes);

/* The same, and stores the planes from `first` on. */
void litebnn_add_carries(uint32_t* carries, int32_t n, const uint32_t* presets, int32_t first, int32_t planes,
                         uint32_t* sums);

/* Numbers of 32 lanes from `planes` planes, at most 16. The 16 words at `sums` are overwritten. */
void litebnn_numbers(uint32_t* sums, int32_t planes, int32_t* numbers);

#endif
