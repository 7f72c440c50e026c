/* The fixed-point arithmetic of TensorFlow Lite's reference kernels, which is gemmlowp's. */
#ifndef LITEBNN_FIXED_POINT_H
#define LITEBNN_FIXED_POINT_H

#include <stdint.h>

static inline int32_t litebnn_clamp(int32_t value, int32_t low, int32_t high) {
  return value < low ? low : value > high ? high : value;
}

/* The upper half of 2 * a * b, rounded. The only product that saturates is that of two INT32_MIN. */
static inline int32_t litebnn_high_product(int32_t a, int32_t b) {
  if (a == INT32_MIN && b == INT32_MIN) return INT32_MAX;
  const int64_t product = (int64_t)a * b;
  const int64_t nudge = product >= 0 ? (int64_t)1 << 30 : 1 - ((int64_t)1 << 30);
  return (int32_t)((product + nudge) / ((int64_t)1 << 31));
}

/* a / 2^exponent, rounded half away from zero. Shifts of negative numbers keep the sign on every compiler of note. */
static inline int32_t litebnn_divide_by_power(int32_t a, int32_t exponent) {
  const int32_t mask = (int32_t)(((int64_t)1 << exponent) - 1);
  const int32_t threshold = (mask >> 1) + (a < 0);
  return (a >> exponent) + ((a & mask) > threshold);
}

/* a * 2^exponent, as unsigned arithmetic, which wraps as the reference does on its targets. */
static inline int32_t litebnn_times_power(int32_t a, int32_t exponent) { return (int32_t)((uint32_t)a << exponent); }

/* Returns a * multiplier * 2^(shift - 31), which is rounded after the product and again after the shift. */
static inline int32_t litebnn_scale(int32_t a, int32_t multiplier, int32_t shift) {
  const int32_t left = shift > 0 ? shift : 0, right = shift > 0 ? 0 : -shift;
  return litebnn_divide_by_power(litebnn_high_product(litebnn_times_power(a, left), multiplier), right);
}

/* Returns a * multiplier * 2^(shift - 31), rounded only once. */
static inline int32_t litebnn_scale_once(int32_t a, int32_t multiplier, int32_t shift) {
  const int32_t right = 31 - shift;
  return (int32_t)(((int64_t)a * multiplier + ((int64_t)1 << (right - 1))) >> right);
}

#endif
