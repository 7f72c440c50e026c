/* MEAN, SUM, REDUCE_MAX and REDUCE_MIN. */
#include "axes.h"
#include "fixed_point.h"

enum { INNER = LITEBNN_AXES - 1 };

/* These functions return the first value if both are equal, or if the second is NaN. */
static float larger(float a, float b) { return b > a ? b : a; }
static float smaller(float a, float b) { return b < a ? b : a; }
static float sum_of(float a, float b) { return a + b; }
static float same(float a, int32_t count) {
  (void)count;
  return a;
}
static float divided(float a, int32_t count) { return a / (float)count; }

/* The outer loop goes over the elements of the output. For each of them, an inner loop goes over the reduced axes of
 * the input. */
#define LITEBNN_REDUCE(walk, input, type, start, joined, written)                                      \
  const int32_t* const strides[1] = {(walk)->strides};                                                 \
  int32_t position[LITEBNN_AXES] = {0}, offset[1] = {0};                                               \
  do {                                                                                                 \
    for (int32_t i = 0; i < (walk)->kept[INNER]; ++i) {                                                \
      int32_t inner_position[LITEBNN_AXES] = {0}, inner[1] = {offset[0] + i * (walk)->strides[INNER]}; \
      type total = start;                                                                              \
      do {                                                                                             \
        for (int32_t k = 0; k < (walk)->reduced[INNER]; ++k) {                                         \
          total = joined(total, (input)[inner[0] + k * (walk)->strides[INNER]]);                       \
        }                                                                                              \
      } while (litebnn_next((walk)->reduced, inner_position, 1, strides, inner));                      \
      *output++ = written;                                                                             \
    }                                                                                                  \
  } while (litebnn_next((walk)->kept, position, 1, strides, offset))

#define LITEBNN_REDUCE_FLOAT(name, start, joined, finished)                                            \
  void litebnn_##name##_float(const litebnn_reduction* reduction, const float* input, float* output) { \
    LITEBNN_REDUCE(reduction, input, float, start, joined, finished(total, reduction->count));         \
  }

LITEBNN_REDUCE_FLOAT(mean, 0.0f, sum_of, divided)
LITEBNN_REDUCE_FLOAT(sum, 0.0f, sum_of, same)
LITEBNN_REDUCE_FLOAT(reduce_max, -3.402823466e+38f, larger, same)
LITEBNN_REDUCE_FLOAT(reduce_min, 3.402823466e+38f, smaller, same)

static int32_t integer_sum(int32_t a, int32_t b) { return a + b; }

static int8_t integer_mean(const litebnn_mean_int8* op, int32_t sum) {
  const int32_t centered = sum - op->reduction.count * op->input_zero_point;
  return (int8_t)litebnn_clamp(litebnn_scale(centered, op->multiplier, op->shift) + op->output_zero_point, -128, 127);
}

void litebnn_reduce_mean_int8(const litebnn_mean_int8* op, const int8_t* input, int8_t* output) {
  LITEBNN_REDUCE(&op->reduction, input, int32_t, 0, integer_sum, integer_mean(op, total));
}
