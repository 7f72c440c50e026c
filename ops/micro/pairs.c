/* The kernel counts for 32 output channels (lanes) at once: plane p is a word with bit p of all 32 counters. The lower
 * five planes stay in registers while the 32 bits of an input word are added, which gives one carry of value 32. Input
 * bits are added in pairs. The second weight of each pair is stored as the exclusive or of both weights, which saves an
 * operation of the adder. To be compared with the weights, an input bit becomes a mask of 32 equal bits. Arm CPUs make
 * a mask by one instruction. Other CPUs take two, so litebnn_pairs_of_masks loads masks, which are made once for all
 * output channels. */
#include "planes.h"

LITEBNN_OPTIONS

static inline uint32_t extended(int8_t mask) { return (uint32_t)(int32_t)mask; }

/* The mask of the input bit at position i of the order in which bits are added. The two bits of a pair are 8 apart. */
#define MASK(word, i) LITEBNN_MASK(word, (i) % 4 / 2 * 16 + (i) / 4)
#define PAIR(i, carry)                                                            \
  do {                                                                            \
    const uint32_t even_ = is_bytes ? extended(masks[i]) : MASK(in, i);           \
    const uint32_t odd_ = is_bytes ? extended(masks[(i) + 1]) : MASK(unequal, i); \
    const uint32_t first_ = weights[i] ^ even_, both_ = weights[(i) + 1] ^ odd_;  \
    (carry) = ((ones ^ first_) & both_) ^ first_;                                 \
    ones ^= both_;                                                                \
  } while (0)
#define PAIR4(i, four)                       \
  do {                                       \
    uint32_t a4_, b4_;                       \
    PAIR(i, a4_);                            \
    PAIR((i) + 2, b4_);                      \
    LITEBNN_ADD(four, twos, twos, a4_, b4_); \
  } while (0)
#define PAIR8(i, eight)                         \
  do {                                          \
    uint32_t a8_, b8_;                          \
    PAIR4(i, a8_);                              \
    PAIR4((i) + 4, b8_);                        \
    LITEBNN_ADD(eight, fours, fours, a8_, b8_); \
  } while (0)
#define PAIR16(i, sixteen)                            \
  do {                                                \
    uint32_t a16_, b16_;                              \
    PAIR8(i, a16_);                                   \
    PAIR8((i) + 8, b16_);                             \
    LITEBNN_ADD(sixteen, eights, eights, a16_, b16_); \
  } while (0)

/* Adds all input bits of a window. Writes one carry for each input word, and the lower planes to `low` unless it is
 * null. */
static inline __attribute__((always_inline)) void add_window(const litebnn_counting* c, const uint32_t* weights,
                                                             const uint32_t* presets, uint32_t* low, int is_bytes) {
  uint32_t ones = presets[0], twos = presets[1], fours = presets[2], eights = presets[3], sixteens = presets[4];
  const uint32_t* window = c->records;
  const int8_t* masks = (const int8_t*)(const void*)c->records;
  for (uint32_t *carries = c->carries, *const end = carries + c->words; carries != end; weights += 32) {
    uint32_t in = 0, unequal = 0;
    if (!is_bytes) {
      in = *window++;
      unequal = in ^ (in >> 8);
    }
    uint32_t a, b;
    PAIR16(0, a);
    PAIR16(16, b);
    LITEBNN_ADD(*carries, sixteens, sixteens, a, b);
    ++carries;
    masks += 32;
  }
  if (low) {
    low[0] = ones;
    low[1] = twos;
    low[2] = fours;
    low[3] = eights;
    low[4] = sixteens;
  }
}

/* One function for each way to get masks. They are not inlined, so that each has all registers to itself. */
static __attribute__((noinline)) void add_words(const litebnn_counting* c, const uint32_t* weights,
                                                const uint32_t* presets, uint32_t* low) {
  add_window(c, weights, presets, low, 0);
}

static __attribute__((noinline)) void add_masks(const litebnn_counting* c, const uint32_t* weights,
                                                const uint32_t* presets, uint32_t* low) {
  add_window(c, weights, presets, low, 1);
}

static inline __attribute__((always_inline)) void write_signs(const litebnn_counting* c, int32_t channels,
                                                              uint32_t* output, int is_bytes) {
  const uint32_t *weights = c->weights, *presets = c->presets;
  for (; channels > 0; channels -= 32, weights += 32 * c->words, presets += c->planes + 1) {
    (is_bytes ? add_masks : add_words)(c, weights, presets, 0);
    *output++ = litebnn_overflows(c->carries, c->words, presets, 5, c->planes);
  }
}

static inline __attribute__((always_inline)) void write_counts(const litebnn_counting* c, uint32_t* numbers,
                                                               int is_bytes) {
  uint32_t sums[kMaxPlanes];
  (is_bytes ? add_masks : add_words)(c, c->weights, c->presets, sums);
  litebnn_add_carries(c->carries, c->words, c->presets, 5, c->planes, sums);
  litebnn_numbers(sums, c->planes, numbers);
}

static void signs(const litebnn_counting* c, int32_t channels, uint32_t* output) {
  write_signs(c, channels, output, 0);
}

static void counts(const litebnn_counting* c, uint32_t* numbers) { write_counts(c, numbers, 0); }

const litebnn_kernel litebnn_pairs = {32, 0, 1, 96, 0, signs, counts};

/* The masks of the four input bits at positions i to i + 3 of the order in which bits are added, a byte for each
 * mask. */
static inline uint32_t four_masks(uint32_t bits, int i) {
  const uint32_t ones = bits >> i & 0x01010101u;
  return (ones << 8) - ones;
}

/* A byte for each mask, in the order of the weights. */
static void prepare_masks(const uint32_t* window, int32_t words, uint32_t* masks) {
  for (const uint32_t* const end = window + words; window != end; ++window, masks += 8) {
    const uint32_t bits = *window ^ (*window & 0x00FF00FFu) << 8;
    masks[0] = four_masks(bits, 0);
    masks[1] = four_masks(bits, 1);
    masks[2] = four_masks(bits, 2);
    masks[3] = four_masks(bits, 3);
    masks[4] = four_masks(bits, 4);
    masks[5] = four_masks(bits, 5);
    masks[6] = four_masks(bits, 6);
    masks[7] = four_masks(bits, 7);
  }
}

static void signs_of_masks(const litebnn_counting* c, int32_t channels, uint32_t* output) {
  write_signs(c, channels, output, 1);
}

static void counts_of_masks(const litebnn_counting* c, uint32_t* numbers) { write_counts(c, numbers, 1); }

const litebnn_kernel litebnn_pairs_of_masks = {32, 24, 1, 96, prepare_masks, signs_of_masks, counts_of_masks};
