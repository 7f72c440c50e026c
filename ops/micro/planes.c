/* Counters of 32 lanes as planes: word p holds bit p of each lane's counter. */
#include "kernel.h"

static int32_t add_to_plane(uint32_t* carries, int32_t n, uint32_t* plane) {
  uint32_t low = *plane;
  int32_t out = 0, i = 0;
  for (; i + 2 <= n; i += 2) {
    uint32_t high;
    LITEBNN_ADD(high, low, low, carries[i], carries[i + 1]);
    carries[out++] = high;
  }
  if (i < n) {
    const uint32_t carry = carries[i];
    carries[out++] = low & carry;
    low ^= carry;
  }
  *plane = low;
  return out;
}

uint32_t litebnn_overflows(uint32_t* carries, int32_t n, const uint32_t* presets, int32_t first, int32_t planes) {
  uint32_t over = presets[planes];
  for (int32_t p = first; p < planes; ++p) {
    uint32_t plane = presets[p];
    n = add_to_plane(carries, n, &plane);
  }
  for (int32_t i = 0; i < n; ++i) over |= carries[i];
  return over;
}

void litebnn_add_carries(uint32_t* carries, int32_t n, const uint32_t* presets, int32_t first, int32_t planes,
                         uint32_t* sums) {
  for (int32_t p = first; p < planes; ++p) {
    sums[p] = presets[p];
    n = add_to_plane(carries, n, sums + p);
  }
}

/* Exchanges bits: those of `mask` in `low` with those `shift` places higher in `high`. */
#define EXCHANGE(low, high, shift, mask)                          \
  do {                                                            \
    const uint32_t t_ = ((high) ^ ((low) >> (shift))) & (mask);   \
    (high) ^= t_;                                                 \
    (low) ^= t_ << (shift);                                       \
  } while (0)

/* Transposes the 8 by 8 bits of each byte: byte k of word j becomes the lower 8 bits of lane 8k + j. */
static void transpose_bytes(uint32_t* w) {
  for (int i = 0; i < 4; ++i) EXCHANGE(w[i], w[i + 4], 4, 0x0F0F0F0Fu);
  for (int i = 0; i < 8; i += 4) {
    EXCHANGE(w[i], w[i + 2], 2, 0x33333333u);
    EXCHANGE(w[i + 1], w[i + 3], 2, 0x33333333u);
  }
  for (int i = 0; i < 8; i += 2) EXCHANGE(w[i], w[i + 1], 1, 0x55555555u);
}

void litebnn_numbers(uint32_t* sums, int32_t planes, int32_t* numbers) {
  for (int32_t p = planes; p < 16; ++p) sums[p] = 0;
  transpose_bytes(sums);
  if (planes > 8) {
    transpose_bytes(sums + 8);
  }
  for (int j = 0; j < 8; ++j) {
    const uint32_t low = sums[j], high = sums[j + 8];
    for (int k = 0; k < 4; ++k) {
      numbers[8 * k + j] = (int32_t)((low >> (8 * k) & 255u) | (high >> (8 * k) & 255u) << 8);
    }
  }
}
