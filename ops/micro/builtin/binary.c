/* Elementwise ops of two inputs that are broadcast, on float and int8. */
#include "axes.h"
#include "fixed_point.h"
#include "window.h"

enum { INNER = LITEBNN_AXES - 1 };

static float larger(float a, float b) { return a > b ? a : b; }
static float smaller(float a, float b) { return a < b ? a : b; }

/* Defines a function that computes an output for each pair of elements a and b. `value` is an expression of a, b and
 * `op`. */
#define LITEBNN_BINARY(name, structure, type, value)                                                              \
  void litebnn_##name(const structure* op, const type* first, const type* second, type* output) {                 \
    const litebnn_broadcast* walk = &op->broadcast;                                                               \
    const int32_t* const strides[2] = {walk->first, walk->second};                                                \
    int32_t position[LITEBNN_AXES] = {0}, offsets[2] = {0, 0};                                                    \
    do {                                                                                                          \
      const type *a_at = first + offsets[0], *b_at = second + offsets[1];                                         \
      for (int32_t i = 0; i < walk->sizes[INNER]; ++i, a_at += walk->first[INNER], b_at += walk->second[INNER]) { \
        const type a = *a_at, b = *b_at;                                                                          \
        *output++ = value;                                                                                        \
      }                                                                                                           \
    } while (litebnn_next(walk->sizes, position, 2, strides, offsets));                                           \
  }

#define LITEBNN_BINARY_FLOAT(name, value) \
  LITEBNN_BINARY(name##_float, litebnn_binary_float, float, litebnn_clamp_to(op->range, value))
#define LITEBNN_BINARY_INT8(name, value) \
  LITEBNN_BINARY(name##_int8, litebnn_binary_int8, int8_t, (int8_t)litebnn_clamp(value, op->range.low, op->range.high))

LITEBNN_BINARY_FLOAT(add, a + b)
LITEBNN_BINARY_FLOAT(sub, a - b)
LITEBNN_BINARY_FLOAT(mul, a* b)
LITEBNN_BINARY_FLOAT(div, a / b)
LITEBNN_BINARY_FLOAT(maximum, larger(a, b))
LITEBNN_BINARY_FLOAT(minimum, smaller(a, b))
LITEBNN_BINARY_FLOAT(prelu, (a >= 0.0f ? a : a * b))

/* Both inputs are multiplied by 2^20 before they are brought to one scale, so that little is lost by rounding. */
static int32_t sum_of(const litebnn_binary_int8* op, int8_t a, int8_t b) {
  const int32_t wide_a = litebnn_times_power(a - op->first_zero_point, 20);
  const int32_t wide_b = litebnn_times_power(b - op->second_zero_point, 20);
  const int32_t scaled_a = litebnn_scale(wide_a, op->first_multiplier, op->first_shift);
  const int32_t scaled_b = litebnn_scale(wide_b, op->second_multiplier, op->second_shift);
  return litebnn_scale(scaled_a + scaled_b, op->output_multiplier, op->output_shift) + op->output_zero_point;
}

static int32_t product_of(const litebnn_binary_int8* op, int8_t a, int8_t b) {
  const int32_t product = (a - op->first_zero_point) * (b - op->second_zero_point);
  return litebnn_scale(product, op->output_multiplier, op->output_shift) + op->output_zero_point;
}

static int32_t rectified(const litebnn_binary_int8* op, int8_t a, int8_t b) {
  const int32_t value = a - op->first_zero_point;
  const int32_t scaled =
      value >= 0 ? litebnn_scale(value, op->first_multiplier, op->first_shift)
                 : litebnn_scale(value * (b - op->second_zero_point), op->output_multiplier, op->output_shift);
  return scaled + op->output_zero_point;
}

LITEBNN_BINARY_INT8(add, sum_of(op, a, b))
LITEBNN_BINARY_INT8(mul, product_of(op, a, b))
LITEBNN_BINARY_INT8(prelu, rectified(op, a, b))
LITEBNN_BINARY_INT8(maximum, a > b ? a : b)
LITEBNN_BINARY_INT8(minimum, a < b ? a : b)
