/* Counters of 32 lanes as planes: word p holds bit p of each lane's counter. */
#include "planes.h"

LITEBNN_OPTIONS

/* Adds four carries to the planes `ones` and `twos`. `four` gets the carry out of these planes. */
#define ADD_FOUR(four, in)                             \
  do {                                                 \
    uint32_t a_two_, b_two_;                           \
    LITEBNN_ADD(a_two_, ones, ones, (in)[0], (in)[1]); \
    LITEBNN_ADD(b_two_, ones, ones, (in)[2], (in)[3]); \
    LITEBNN_ADD(four, twos, twos, a_two_, b_two_);     \
  } while (0)

/* Adds `n` carries to three planes, eight at a time. The carries out of the last plane replace them; returns their
 * number. Zeros are first appended, so that the number of carries is a multiple of four. */
static inline __attribute__((always_inline)) int32_t add_to_three(uint32_t* carries, int32_t n, uint32_t* planes) {
  uint32_t ones = planes[0], twos = planes[1], fours = planes[2];
  const uint32_t* in = carries;
  uint32_t* out = carries;
  /* The access is volatile, because compilers would otherwise replace the loop by a call of memset. */
  for (; n % 4; ++n) ((volatile uint32_t*)carries)[n] = 0;
  for (const uint32_t* const end = carries + n / 8; out != end; in += 8) {
    uint32_t a, b;
    ADD_FOUR(a, in);
    ADD_FOUR(b, in + 4);
    LITEBNN_ADD(*out, fours, fours, a, b);
    ++out;
  }
  if (n % 8) {
    uint32_t four;
    ADD_FOUR(four, in);
    *out++ = fours & four;
    fours ^= four;
  }
  planes[0] = ones;
  planes[1] = twos;
  planes[2] = fours;
  return (int32_t)(out - carries);
}

uint32_t litebnn_overflows(uint32_t* carries, int32_t n, const uint32_t* presets, int32_t first, int32_t planes) {
  uint32_t over = presets[planes];
  for (int32_t p = first; p < planes; p += 3) {
    uint32_t three[3] = {presets[p], presets[p + 1], presets[p + 2]};
    n = add_to_three(carries, n, three);
  }
  for (const uint32_t* const end = carries + n; carries != end;) over |= *carries++;
  return over;
}

void litebnn_add_carries(uint32_t* carries, int32_t n, const uint32_t* presets, int32_t first, int32_t planes,
                         uint32_t* sums) {
  for (int32_t p = first; p < planes; p += 3) {
    for (int32_t i = p; i < p + 3; ++i) sums[i] = presets[i];
    n = add_to_three(carries, n, sums + p);
  }
}

/* Exchanges the bits of `high` under `mask` with the bits of `low` that are `shift` positions higher. */
#define EXCHANGE(low, high, shift, mask)                        \
  do {                                                          \
    const uint32_t t_ = ((high) ^ ((low) >> (shift))) & (mask); \
    (high) ^= t_;                                               \
    (low) ^= t_ << (shift);                                     \
  } while (0)

/* Transposes four matrices of 8 by 8 bits. The matrix k is byte k of eight planes, and bit j of these bytes belongs to
 * lane 8k + j. Afterwards byte k of word j has all bits of lane 8k + j. */
static void transpose_bytes(uint32_t* w) {
  uint32_t a = w[0], b = w[1], c = w[2], d = w[3], e = w[4], f = w[5], g = w[6], h = w[7];
  EXCHANGE(a, e, 4, 0x0F0F0F0Fu);
  EXCHANGE(b, f, 4, 0x0F0F0F0Fu);
  EXCHANGE(c, g, 4, 0x0F0F0F0Fu);
  EXCHANGE(d, h, 4, 0x0F0F0F0Fu);
  EXCHANGE(a, c, 2, 0x33333333u);
  EXCHANGE(b, d, 2, 0x33333333u);
  EXCHANGE(e, g, 2, 0x33333333u);
  EXCHANGE(f, h, 2, 0x33333333u);
  EXCHANGE(a, b, 1, 0x55555555u);
  EXCHANGE(c, d, 1, 0x55555555u);
  EXCHANGE(e, f, 1, 0x55555555u);
  EXCHANGE(g, h, 1, 0x55555555u);
  w[0] = a, w[1] = b, w[2] = c, w[3] = d, w[4] = e, w[5] = f, w[6] = g, w[7] = h;
}

void litebnn_numbers(uint32_t* sums, int32_t planes, uint32_t* numbers) {
  for (int32_t p = planes; p < 16; ++p) sums[p] = 0;
  transpose_bytes(sums);
  if (planes > 8) transpose_bytes(sums + 8);
  for (const uint32_t* const end = sums + 8; sums != end; ++sums) {
    const uint32_t low = sums[0], high = sums[8];
    *numbers++ = (low & 0x00FF00FFu) | (high & 0x00FF00FFu) << 8;
    *numbers++ = (low >> 8 & 0x00FF00FFu) | (high & 0xFF00FF00u);
  }
}
