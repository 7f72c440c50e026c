/* Lanes are 32 output channels. Each input bit is added to all of them at once.
 *
 * A counter's lower five planes stay in registers while a word's 32 bits are added, and one carry of weight 32 comes
 * out. The second weight of each pair is stored as the exclusive or of both, which saves an operation of the adder.
 */
#include "kernel.h"

#define PAIR(at, carry)                                                            \
  do {                                                                             \
    const uint32_t first_ = weights[at] ^ LITEBNN_MASK(in, at);                    \
    const uint32_t both_ = weights[(at) + 1] ^ LITEBNN_MASK(unequal, at);          \
    (carry) = ((ones ^ first_) & both_) ^ first_;                                  \
    ones ^= both_;                                                                 \
  } while (0)
#define PAIR4(at, four)                        \
  do {                                         \
    uint32_t a4_, b4_;                         \
    PAIR(at, a4_);                             \
    PAIR((at) + 2, b4_);                       \
    LITEBNN_ADD(four, twos, twos, a4_, b4_);   \
  } while (0)
#define PAIR8(at, eight)                         \
  do {                                           \
    uint32_t a8_, b8_;                           \
    PAIR4(at, a8_);                              \
    PAIR4((at) + 4, b8_);                        \
    LITEBNN_ADD(eight, fours, fours, a8_, b8_);  \
  } while (0)
#define PAIR16(at, sixteen)                            \
  do {                                                 \
    uint32_t a16_, b16_;                               \
    PAIR8(at, a16_);                                   \
    PAIR8((at) + 8, b16_);                             \
    LITEBNN_ADD(sixteen, eights, eights, a16_, b16_);  \
  } while (0)

/* Writes the lower planes to `low` and a carry for each word. */
static inline void add_window(const litebnn_counting* c, const uint32_t* weights, const uint32_t* presets,
                              uint32_t* low) {
  uint32_t ones = presets[0], twos = presets[1], fours = presets[2], eights = presets[3], sixteens = presets[4];
  const uint32_t *window = c->records, *const end = window + c->words;
  uint32_t* carries = c->carries;
  for (; window != end; ++window, weights += 32) {
    const uint32_t in = *window, unequal = in ^ (in >> 1);
    uint32_t a, b;
    PAIR16(0, a);
    PAIR16(16, b);
    LITEBNN_ADD(*carries, sixteens, sixteens, a, b);
    ++carries;
  }
  if (low) {
    low[0] = ones;
    low[1] = twos;
    low[2] = fours;
    low[3] = eights;
    low[4] = sixteens;
  }
}

static void signs(const litebnn_counting* c, int32_t channels, uint32_t* output) {
  const uint32_t *weights = c->weights, *presets = c->presets;
  for (; channels > 0; channels -= 32, weights += 32 * c->words, presets += c->planes + 1) {
    add_window(c, weights, presets, 0);
    *output++ = litebnn_overflows(c->carries, c->words, presets, 5, c->planes);
  }
}

static void counts(const litebnn_counting* c, int32_t* numbers) {
  uint32_t sums[16];
  add_window(c, c->weights, c->presets, sums);
  litebnn_add_carries(c->carries, c->words, c->presets, 5, c->planes, sums);
  litebnn_numbers(sums, c->planes, numbers);
}

const litebnn_kernel litebnn_pairs = {32, 0, 1, 96, 0, signs, counts};
