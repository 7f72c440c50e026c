/* The kernel for CPUs with MVE (Helium). It counts as pairs.c does, but for 128 output channels (lanes), and each bit
 * plane of the counters is a vector. The eight vector registers have room for three planes, so each eight input bits
 * give a carry to higher planes. */
#include "planes.h"

LITEBNN_OPTIONS

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>

#define ADD(high, low, a, b, c)                                            \
  do {                                                                     \
    const uint32x4_t a_ = (a), b_ = (b), c_ = (c), u_ = veorq_u32(a_, b_); \
    (high) = vorrq_u32(vandq_u32(a_, b_), vandq_u32(u_, c_));              \
    (low) = veorq_u32(u_, c_);                                             \
  } while (0)
/* Adds the pair of input bits i and i + 8 to the plane `ones`. `carry` gets the carry out of this plane. */
#define PAIR(at, i, carry)                                                                                        \
  do {                                                                                                            \
    const uint32x4_t first_ = veorq_u32(vld1q_u32(weights + 4 * (at)), vdupq_n_u32(LITEBNN_MASK(in, i)));         \
    const uint32x4_t both_ = veorq_u32(vld1q_u32(weights + 4 * (at) + 4), vdupq_n_u32(LITEBNN_MASK(unequal, i))); \
    (carry) = veorq_u32(vandq_u32(veorq_u32(ones, first_), both_), first_);                                       \
    ones = veorq_u32(ones, both_);                                                                                \
  } while (0)
#define PAIR4(at, i, four)           \
  do {                               \
    uint32x4_t a4_, b4_;             \
    PAIR(at, i, a4_);                \
    PAIR((at) + 2, (i) + 16, b4_);   \
    ADD(four, twos, twos, a4_, b4_); \
  } while (0)

static inline void add_window(const litebnn_counting* c, const uint32_t* weights, const uint32_t* presets,
                              uint32_t* low) {
  uint32x4_t ones = vld1q_u32(presets), twos = vld1q_u32(presets + 4), fours = vld1q_u32(presets + 8);
  uint32_t* carries = c->carries;
  for (const uint32_t *window = c->records, *end = window + c->words; window != end; ++window) {
    uint32_t in = *window, unequal = in ^ (in >> 8);
    for (int quarter = 0; quarter < 4; ++quarter, in >>= 2, unequal >>= 2, weights += 32, carries += 4) {
      uint32x4_t a, b, eight;
      PAIR4(0, 0, a);
      PAIR4(4, 1, b);
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

/* Adds `n` carries to two planes, four at a time. The carries out of the second plane replace them; returns their
 * number. */
static inline int32_t add_to_two(uint32_t* carries, int32_t n, uint32x4_t planes[2]) {
  uint32x4_t ones = planes[0], twos = planes[1];
  const int32_t fours = (n + 3) / 4;
  for (uint32_t *to = carries + 4 * n, *const end = carries + 16 * fours; to != end; to += 4) {
    vst1q_u32(to, vdupq_n_u32(0));
  }
  const uint32_t* in = carries;
  for (int32_t i = 0; i < fours; ++i, in += 16) {
    uint32x4_t a, b, four;
    ADD(a, ones, ones, vld1q_u32(in), vld1q_u32(in + 4));
    ADD(b, ones, ones, vld1q_u32(in + 8), vld1q_u32(in + 12));
    ADD(four, twos, twos, a, b);
    vst1q_u32(carries + 4 * i, four);
  }
  planes[0] = ones;
  planes[1] = twos;
  return fours;
}

static void signs(const litebnn_counting* c, int32_t channels, uint32_t* output) {
  const uint32_t *weights = c->weights, *presets = c->presets;
  for (; channels > 0; channels -= 128, weights += 128 * c->words, presets += 4 * (c->planes + 1), output += 4) {
    add_window(c, weights, presets, 0);
    int32_t n = 4 * c->words;
    uint32x4_t over = vld1q_u32(presets + 4 * c->planes);
    for (int32_t p = 3; p < c->planes; p += 2) {
      uint32x4_t planes[2] = {vld1q_u32(presets + 4 * p), vld1q_u32(presets + 4 * p + 4)};
      n = add_to_two(c->carries, n, planes);
    }
    for (int32_t i = 0; i < n; ++i) over = vorrq_u32(over, vld1q_u32(c->carries + 4 * i));
    vst1q_p_u32(output, over, vctp32q((uint32_t)LITEBNN_WORDS(channels)));
  }
}

static void counts(const litebnn_counting* c, uint32_t* numbers) {
  uint32_t sums[4 * kMaxPlanes];
  add_window(c, c->weights, c->presets, sums);
  int32_t n = 4 * c->words;
  for (int32_t p = 3; p < c->planes; p += 2) {
    uint32x4_t planes[2] = {vld1q_u32(c->presets + 4 * p), vld1q_u32(c->presets + 4 * p + 4)};
    n = add_to_two(c->carries, n, planes);
    vst1q_u32(sums + 4 * p, planes[0]);
    vst1q_u32(sums + 4 * p + 4, planes[1]);
  }
  for (int q = 0; q < 4; ++q) {
    uint32_t planes[kMaxPlanes];
    for (int32_t p = 0; p < c->planes; ++p) planes[p] = sums[4 * p + q];
    litebnn_numbers(planes, c->planes, numbers + 16 * q);
  }
}

const litebnn_kernel litebnn_helium = {128, 0, 16, 384, 0, signs, counts};
#endif
