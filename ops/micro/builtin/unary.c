/* Elementwise ops of one input. */
#include "exponential.h"
#include "fixed_point.h"
#include "window.h"

#define LITEBNN_UNARY(name, value)                                                \
  void litebnn_##name##_float(const float* input, int32_t count, float* output) { \
    for (int32_t i = 0; i < count; ++i) {                                         \
      const float x = input[i];                                                   \
      output[i] = value;                                                          \
    }                                                                             \
  }

void litebnn_clamp_float(litebnn_range_float range, const float* input, int32_t count, float* output) {
  for (int32_t i = 0; i < count; ++i) output[i] = litebnn_clamp_to(range, input[i]);
}

void litebnn_leaky_relu_float(float slope, const float* input, int32_t count, float* output) {
  for (int32_t i = 0; i < count; ++i) output[i] = input[i] > 0.0f ? input[i] : input[i] * slope;
}

static float rectified_shift(float x) {
  const litebnn_range_float six = {0.0f, 6.0f};
  return litebnn_clamp_to(six, x + 3.0f);
}

/* Two equal formulas are used, so that the argument of the exponential function is never above 0, and the result cannot
 * overflow. */
static float logistic(float x) {
  if (x >= 0.0f) return 1.0f / (1.0f + litebnn_exp(-x));
  const float power = litebnn_exp(x);
  return power / (1.0f + power);
}

/* Below 0.625, the function is the polynomial of tanhf in the Cephes library, because the formula with the exponential
 * function would lose digits there by cancellation. */
static float hyperbolic_tangent(float x) {
  const float size = x < 0.0f ? -x : x;
  if (size < 0.625f) {
    const float z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    return p * z * x + x;
  }
  const float tangent = 1.0f - 2.0f / (litebnn_exp(size + size) + 1.0f);
  return x < 0.0f ? -tangent : tangent;
}

LITEBNN_UNARY(hard_swish, x* rectified_shift(x) / 6.0f)
LITEBNN_UNARY(abs, (x <= 0.0f ? 0.0f - x : x))
LITEBNN_UNARY(neg, -x)
LITEBNN_UNARY(sign, (x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : 0.0f))
LITEBNN_UNARY(square, x* x)
LITEBNN_UNARY(logistic, logistic(x))
LITEBNN_UNARY(tanh, hyperbolic_tangent(x))
LITEBNN_UNARY(elu, (x < 0.0f ? litebnn_exp(x) - 1.0f : x))

void litebnn_lookup_int8(const int8_t table[256], const int8_t* input, int32_t count, int8_t* output) {
  for (int32_t i = 0; i < count; ++i) output[i] = table[input[i] + 128];
}
