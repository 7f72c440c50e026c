/* CPUs with MVE (Helium): lanes are 128 output channels, planes are vectors. Otherwise as pairs.c.
 *
 * There are eight vector registers, so that three planes stay in them and eight input bits give a carry.
 */
#include "kernel.h"

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>

#define ADD(high, low, a, b, c)                                                    \
  do {                                                                             \
    const uint32x4_t a_ = (a), b_ = (b), c_ = (c), u_ = veorq_u32(a_, b_);         \
    (high) = vorrq_u32(vandq_u32(a_, b_), vandq_u32(u_, c_));                      \
    (low) = veorq_u32(u_, c_);                                                     \
  } while (0)
#define PAIR(at, carry)                                                                                     \
  do {                                                                                                      \
    const uint32x4_t first_ = veorq_u32(vld1q_u32(weights + 4 * (at)), vdupq_n_u32(LITEBNN_MASK(in, at)));  \
    const uint32x4_t both_ =                                                                                \
        veorq_u32(vld1q_u32(weights + 4 * (at) + 4), vdupq_n_u32(LITEBNN_MASK(unequal, at)));               \
    (carry) = veorq_u32(vandq_u32(veorq_u32(ones, first_), both_), first_);                                 \
    ones = veorq_u32(ones, both_);                                                                          \
  } while (0)
#define PAIR4(at, four)                \
  do {                                 \
    uint32x4_t a4_, b4_;               \
    PAIR(at, a4_);                     \
    PAIR((at) + 2, b4_);               \
    ADD(four, twos, twos, a4_, b4_);   \
  } while (0)

static inline void add_window(const litebnn_counting* c, const uint32_t* weights, const uint32_t* presets,
                              uint32_t* low) {
  uint32x4_t ones = vld1q_u32(presets), twos = vld1q_u32(presets + 4), fours = vld1q_u32(presets + 8);
  uint32_t* carries = c->carries;
  for (const uint32_t *window = c->records, *end = window + c->words; window != end; ++window) {
    uint32_t in = *window, unequal = in ^ (in >> 1);
    for (int quarter = 0; quarter < 4; ++quarter, in >>= 8, unequal >>= 8, weights += 32, carries += 4) {
      uint32x4_t a, b, eight;
      PAIR4(0, a);
      PAIR4(4, b);
      ADD(eight, fours, fours, a, b);
      vst1q_u32(carries, eight);
    }
  }
  if (low) {
    vst1q_u32(low, ones);
    vst1q_u32(low + 4, twos);
    vst1q_u32(low + 8, fours);
  }
}

static inline int32_t add_to_plane(uint32_t* carries, int32_t n, uint32x4_t* plane) {
  uint32x4_t low = *plane;
  uint32_t* out = carries;
  const uint32_t* in = carries;
  for (int32_t i = 0; i < n / 2; ++i, in += 8, out += 4) {
    uint32x4_t high;
    ADD(high, low, low, vld1q_u32(in), vld1q_u32(in + 4));
    vst1q_u32(out, high);
  }
  if (n % 2) {
    const uint32x4_t carry = vld1q_u32(in);
    vst1q_u32(out, vandq_u32(low, carry));
    low = veorq_u32(low, carry);
  }
  *plane = low;
  return (n + 1) / 2;
}

static void signs(const litebnn_counting* c, int32_t channels, uint32_t* output) {
  const uint32_t *weights = c->weights, *presets = c->presets;
  for (; channels > 0; channels -= 128, weights += 128 * c->words, presets += 4 * (c->planes + 1), output += 4) {
    add_window(c, weights, presets, 0);
    int32_t n = 4 * c->words;
    uint32x4_t over = vld1q_u32(presets + 4 * c->planes);
    for (int32_t p = 3; p < c->planes; ++p) {
      uint32x4_t plane = vld1q_u32(presets + 4 * p);
      n = add_to_plane(c->carries, n, &plane);
    }
    for (int32_t i = 0; i < n; ++i) over = vorrq_u32(over, vld1q_u32(c->carries + 4 * i));
    vst1q_p_u32(output, over, vctp32q((uint32_t)LITEBNN_WORDS(channels)));
  }
}

static void counts(const litebnn_counting* c, int32_t* numbers) {
  uint32_t sums[16 * 4];
  add_window(c, c->weights, c->presets, sums);
  int32_t n = 4 * c->words;
  for (int32_t p = 3; p < c->planes; ++p) {
    uint32x4_t plane = vld1q_u32(c->presets + 4 * p);
    n = add_to_plane(c->carries, n, &plane);
    vst1q_u32(sums + 4 * p, plane);
  }
  for (int q = 0; q < 4; ++q) {
    uint32_t planes[16];
    for (int32_t p = 0; p < c->planes; ++p) planes[p] = sums[4 * p + q];
    litebnn_numbers(planes, c->planes, numbers + 32 * q);
  }
}

const litebnn_kernel litebnn_helium = {128, 0, 16, 384, 0, signs, counts};
#endif
