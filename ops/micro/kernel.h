/* What a kernel provides. The weights' orders are in litebnn_micro.h. */
#ifndef LITEBNN_MICRO_KERNEL_H
#define LITEBNN_MICRO_KERNEL_H

#include "litebnn_micro.h"

/* GCC's scheduler moves loads ahead, for which in-order cores with 13 registers have none left: it costs a tenth. */
#if defined(__GNUC__) && !defined(__clang__)
#define LITEBNN_OPTIONS \
  _Pragma("GCC optimize(\"O2\", \"no-schedule-insns\", \"no-schedule-insns2\", \"no-tree-loop-distribute-patterns\")")
#else
#define LITEBNN_OPTIONS
#endif

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
  int32_t carry_words;  /* for each word of the window; kCarryRest words more belong to the carries */
  int32_t weight_words; /* of a block, for each three words of the window */
  void (*prepare)(const uint32_t* window, int32_t words, uint32_t* records);
  /* Writes ceil(channels / 32) words of output bits. */
  void (*signs)(const litebnn_counting* counting, int32_t channels, uint32_t* output);
  /* Writes the counts of `lanes` channels of the first block, as numbers of 16 bits; of one channel, one of 32 bits. */
  void (*counts)(const litebnn_counting* counting, uint32_t* counts);
};

/* Words after the carries, by which their number becomes a multiple of four. */
enum { kCarryRest = 3 };

#define LITEBNN_WORDS(channels) (((channels) + 31) / 32)

#endif
