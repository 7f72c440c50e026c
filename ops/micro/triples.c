/* Lanes are 32 output channels; three input bits are added at once, by a table in flash.
 *
 * The sum of three products is known from one bit and one carry. For an even number of input bits that are 1, the
 * weights hold both. For an odd number, complementing all inputs complements both. A record of each three input bits
 * holds that complement's mask and the carry's place; it is made once for all output channels.
 */
#include "kernel.h"

enum { kRecordBytes = 20, kBlock = 16 };

#define TRIPLE(sum, carry)                                                                  \
  do {                                                                                      \
    const uint32_t mask_ = *record++, offset_ = *record++;                                  \
    (sum) = weights[0] ^ mask_;                                                             \
    (carry) = *(const uint32_t*)(const void*)((const char*)block + offset_) ^ mask_;        \
    weights += 5;                                                                           \
  } while (0)
/* Two triples are a carry of weight 2 and one of weight 4. */
#define TRIPLE2(four, two)                      \
  do {                                          \
    uint32_t s0_, c0_, s1_, c1_;                \
    TRIPLE(s0_, c0_);                           \
    TRIPLE(s1_, c1_);                           \
    LITEBNN_ADD(two, ones, ones, s0_, s1_);     \
    LITEBNN_ADD(four, twos, twos, c0_, c1_);    \
  } while (0)
#define TRIPLE4(four0, four1, four2)              \
  do {                                            \
    uint32_t p4_, q4_;                            \
    TRIPLE2(four0, p4_);                          \
    TRIPLE2(four1, q4_);                          \
    LITEBNN_ADD(four2, twos, twos, p4_, q4_);     \
  } while (0)
#define TRIPLE8(eight0, eight1, eight2)                \
  do {                                                 \
    uint32_t p8_, q8_, r8_, s8_, t8_, u8_;             \
    TRIPLE4(p8_, q8_, r8_);                            \
    LITEBNN_ADD(eight0, fours, fours, p8_, q8_);       \
    TRIPLE4(s8_, t8_, u8_);                            \
    LITEBNN_ADD(eight1, fours, fours, s8_, t8_);       \
    LITEBNN_ADD(eight2, fours, fours, r8_, u8_);       \
  } while (0)

#define RECORD(bit)                                                                                       \
  do {                                                                                                    \
    *records++ = LITEBNN_MASK(parity, bit);                                                               \
    *records++ = (uint32_t)(kRecordBytes * ((bit) % kBlock) + 4) + (((b ^ c) >> (bit)&1u) << 3) +         \
                 (((a ^ c) >> (bit)&1u) << 2);                                                            \
  } while (0)
#define RECORD4(bit)   \
  RECORD(bit);         \
  RECORD((bit) + 1);   \
  RECORD((bit) + 2);   \
  RECORD((bit) + 3)
#define RECORD16(bit)  \
  RECORD4(bit);        \
  RECORD4((bit) + 4);  \
  RECORD4((bit) + 8);  \
  RECORD4((bit) + 12)

static void prepare(const uint32_t* window, int32_t words, uint32_t* records) {
  for (const uint32_t* const end = window + words; window != end; window += 3) {
    const uint32_t a = window[0], b = window[1], c = window[2], parity = a ^ b ^ c;
    RECORD16(0);
    RECORD16(16);
  }
}

/* Writes the lower planes to `low` and two carries for each word. */
static inline void add_window(const litebnn_counting* counting, const uint32_t* weights, const uint32_t* presets,
                              uint32_t* low) {
  uint32_t ones = presets[0], twos = presets[1], fours = presets[2], eights = presets[3];
  const uint32_t* record = counting->records;
  uint32_t *carries = counting->carries, *const end = carries + 2 * counting->words;
  while (carries != end) {
    const uint32_t* const block = weights;
    uint32_t a, b, c, d, e, f;
    TRIPLE8(a, b, c);
    LITEBNN_ADD(*carries, eights, eights, a, b);
    ++carries;
    TRIPLE8(d, e, f);
    LITEBNN_ADD(*carries, eights, eights, d, e);
    ++carries;
    LITEBNN_ADD(*carries, eights, eights, c, f);
    ++carries;
  }
  if (low) {
    low[0] = ones;
    low[1] = twos;
    low[2] = fours;
    low[3] = eights;
  }
}

static void signs(const litebnn_counting* c, int32_t channels, uint32_t* output) {
  const uint32_t *weights = c->weights, *presets = c->presets;
  for (; channels > 0; channels -= 32, weights += c->words / 3 * 160, presets += c->planes + 1) {
    add_window(c, weights, presets, 0);
    *output++ = litebnn_overflows(c->carries, 2 * c->words, presets, 4, c->planes);
  }
}

static void counts(const litebnn_counting* c, int32_t* numbers) {
  uint32_t sums[16];
  add_window(c, c->weights, c->presets, sums);
  litebnn_add_carries(c->carries, 2 * c->words, c->presets, 4, c->planes, sums);
  litebnn_numbers(sums, c->planes, numbers);
}

const litebnn_kernel litebnn_triples = {32, 64, 2, 160, prepare, signs, counts};
