/* Lanes are 32 output channels; three input bits are added at once, by a table in flash.
 *
 * The sum of three products is known from one bit and one carry. For an even number of input bits that are 1, the
 * weights hold both. For an odd number, complementing all inputs complements both. A record of each three input bits
 * holds that complement's mask and the carry's place; it is made once for all output channels. The bits of a word are
 * taken in the order 0, 8, 16, 24, 1, 9, ..., in which four records are made at once.
 */
#include "planes.h"

LITEBNN_OPTIONS

/* For each eight triples of input bits, a record has eight masks of a byte each, and then eight offsets, in bytes, of
 * the triples' carries in the weights. */
enum { kTripleBytes = 20, kRecordBytes = 16 };

#define TRIPLE(i, sum, carry)                                                                  \
  do {                                                                                         \
    const uint32_t mask_ = (uint32_t)(int32_t)(int8_t)record[i];                               \
    (sum) = weights[5 * (i)] ^ mask_;                                                          \
    (carry) = *(const uint32_t*)(const void*)((const char*)weights + record[(i) + 8]) ^ mask_; \
  } while (0)
/* Adds two triples to the planes `ones` and `twos`. `two` and `four` get carries of the values 2 and 4. */
#define TRIPLE2(i, four, two)                \
  do {                                       \
    uint32_t s0_, c0_, s1_, c1_;             \
    TRIPLE(i, s0_, c0_);                     \
    TRIPLE((i) + 1, s1_, c1_);               \
    LITEBNN_ADD(two, ones, ones, s0_, s1_);  \
    LITEBNN_ADD(four, twos, twos, c0_, c1_); \
  } while (0)
#define TRIPLE4(i, four0, four1, four2)       \
  do {                                        \
    uint32_t p4_, q4_;                        \
    TRIPLE2(i, four0, p4_);                   \
    TRIPLE2((i) + 2, four1, q4_);             \
    LITEBNN_ADD(four2, twos, twos, p4_, q4_); \
  } while (0)
#define TRIPLE8(eight0, eight1, eight2)          \
  do {                                           \
    uint32_t p8_, q8_, r8_, s8_, t8_, u8_;       \
    TRIPLE4(0, p8_, q8_, r8_);                   \
    LITEBNN_ADD(eight0, fours, fours, p8_, q8_); \
    TRIPLE4(4, s8_, t8_, u8_);                   \
    LITEBNN_ADD(eight1, fours, fours, s8_, t8_); \
    LITEBNN_ADD(eight2, fours, fours, r8_, u8_); \
    weights += 8 * kTripleBytes / 4;             \
    record += kRecordBytes;                      \
  } while (0)

/* The bits i, i + 8, i + 16 and i + 24 of a word, each in a byte of its own. */
#define EVERY_8TH(word, i) (((word) >> (i)) & 0x01010101u)
#define OFFSETS(i) (4 * (2 * EVERY_8TH(high, i) + EVERY_8TH(low, i)))
#define RECORDS8(i)                                                                   \
  do {                                                                                \
    const uint32_t first = EVERY_8TH(parity, i), second = EVERY_8TH(parity, (i) + 1); \
    records[0] = (first << 8) - first;                                                \
    records[1] = (second << 8) - second;                                              \
    records[2] = 0x402C1804u + OFFSETS(i);                                            \
    records[3] = 0x907C6854u + OFFSETS((i) + 1);                                      \
    records += 4;                                                                     \
  } while (0)

static void prepare(const uint32_t* window, int32_t words, uint32_t* records) {
  for (const uint32_t* const end = window + words; window != end; window += 3) {
    const uint32_t high = window[1] ^ window[2], low = window[0] ^ window[2], parity = window[0] ^ high;
    RECORDS8(0);
    RECORDS8(2);
    RECORDS8(4);
    RECORDS8(6);
  }
}

/* Adds all input bits of a window. Writes two carries for each input word, and the lower planes to `low` unless it is
 * null. */
static inline void add_window(const litebnn_counting* counting, const uint32_t* weights, const uint32_t* presets,
                              uint32_t* low) {
  uint32_t ones = presets[0], twos = presets[1], fours = presets[2], eights = presets[3];
  const uint8_t* record = (const uint8_t*)(const void*)counting->records;
  uint32_t *carries = counting->carries, *const end = carries + 2 * counting->words;
  while (carries != end) {
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

static void counts(const litebnn_counting* c, uint32_t* numbers) {
  uint32_t sums[kMaxPlanes];
  add_window(c, c->weights, c->presets, sums);
  litebnn_add_carries(c->carries, 2 * c->words, c->presets, 4, c->planes, sums);
  litebnn_numbers(sums, c->planes, numbers);
}

const litebnn_kernel litebnn_triples = {32, 16, 2, 160, prepare, signs, counts};
