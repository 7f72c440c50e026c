/* The kernel for one output channel at a time: it counts the ones in the exclusive or of the window and the weights. */
#include "kernel.h"

#if defined(__ARM_FEATURE_SIMD32)
#include <arm_acle.h>
#define ADD_BYTES(bytes, sum) __usada8(bytes, 0, sum)
#else
#define ADD_BYTES(bytes, sum) ((sum) + (((bytes) * 0x01010101u) >> 24))
#endif

/* The compiler's builtin is used only for CPUs with a popcount instruction. For others, it would call a slow
 * function. */
#if defined(__riscv_zbb) || defined(__x86_64__) || defined(__aarch64__)
#define ADD_ONES(v, sum) ((sum) + (uint32_t)__builtin_popcount(v))
#else
static inline uint32_t add_ones(uint32_t v, uint32_t sum) {
  v = v - ((v >> 1) & 0x55555555u);
  v = (v & 0x33333333u) + ((v >> 2) & 0x33333333u);
  return ADD_BYTES((v + (v >> 4)) & 0x0F0F0F0Fu, sum);
}
#define ADD_ONES(v, sum) add_ones(v, sum)
#endif

static inline uint32_t differing(const uint32_t* window, const uint32_t* weights, int32_t words) {
  uint32_t sum = 0;
  for (const uint32_t* const end = window + words; window != end; ++window, ++weights) {
    sum = ADD_ONES(*window ^ *weights, sum);
  }
  return sum;
}

static void signs(const litebnn_counting* c, int32_t channels, uint32_t* output) {
  const uint32_t* weights = c->weights;
  uint32_t word = 0;
  for (int32_t i = 0; i < channels; ++i, weights += c->words) {
    const int32_t count = (int32_t)differing(c->records, weights, c->words);
    /* The preset is the channel's threshold, which may be negative. */
    const int32_t threshold = c->presets ? (int32_t)c->presets[i] : 0;
    word |= (uint32_t)(count > threshold) << (i % 32);
    if (i % 32 == 31 || i + 1 == channels) {
      *output++ = word;
      word = 0;
    }
  }
}

static void counts(const litebnn_counting* c, uint32_t* numbers) {
  const uint32_t preset = c->presets ? *c->presets : 0;
  *numbers = differing(c->records, c->weights, c->words) + preset;
}

const litebnn_kernel litebnn_popcount = {1, 0, 0, 3, 0, signs, counts};
