/* The interface of a kernel. litebnn_micro.h describes the order of its weights. */
#ifndef LITEBNN_MICRO_KERNEL_H
#define LITEBNN_MICRO_KERNEL_H

#include "litebnn_micro.h"

/* Turns off GCC's instruction scheduling, which moves loads up. In-order cores with 13 registers have no registers left
 * for the loaded values, so scheduling makes the kernels a tenth slower. */
#if defined(__GNUC__) && !defined(__clang__)
#define LITEBNN_OPTIONS \
  _Pragma("GCC optimize(\"O2\", \"no-schedule-insns\", \"no-schedule-insns2\", \"no-tree-loop-distribute-patterns\")")
#else
#define LITEBNN_OPTIONS
#endif

/* The arguments of a kernel for the blocks of channels of one group, at one output pixel. */
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
  int32_t carry_words;  /* for each word of the window; kCarryRest words more belong to the carries */
  int32_t weight_words; /* of a block, for each three words of the window */
  void (*prepare)(const uint32_t* window, int32_t words, uint32_t* records);
  /* Computes the outputs of a group as bits, and writes them as ceil(channels / 32) words. */
  void (*signs)(const litebnn_counting* counting, int32_t channels, uint32_t* output);
  /* Writes the counts of the first block, one 16-bit number per lane. A kernel with one lane writes a 32-bit number. */
  void (*counts)(const litebnn_counting* counting, uint32_t* counts);
};

/* Kernels append up to this many zeros to the carries, so that the number of carries is a multiple of four. */
enum { kCarryRest = 3 };

#define LITEBNN_WORDS(channels) (((channels) + 31) / 32)

#endif
