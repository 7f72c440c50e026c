/* SOFTMAX on float and int8. */
#include "exponential.h"
#include "fixed_point.h"
#include "litebnn_builtin.h"

void litebnn_softmax_float(float beta, const float* input, int32_t rows, int32_t depth, float* output) {
  for (; rows > 0; --rows, input += depth, output += depth) {
    float largest = input[0], sum = 0.0f;
    for (int32_t i = 1; i < depth; ++i) largest = input[i] > largest ? input[i] : largest;
    for (int32_t i = 0; i < depth; ++i) {
      output[i] = litebnn_exp((input[i] - largest) * beta);
      sum += output[i];
    }
    for (int32_t i = 0; i < depth; ++i) output[i] = output[i] / sum;
  }
}

static int32_t saturated(int64_t value) {
  return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int32_t)value;
}

/* Computes 1 / (1 + x) by Newton's method, as gemmlowp does. The argument is a number x between 0 and 1, times 2^31. */
static int32_t reciprocal_of_one_plus(int32_t x) {
  const int32_t half = (int32_t)(((int64_t)x + INT32_MAX + 1) / 2);
  /* The constants below are 48 / 17, -32 / 17 and 1, times 2^29. */
  int32_t guess = 1515870810 + litebnn_high_product(half, -1010580540);
  for (int i = 0; i < 3; ++i) {
    const int32_t error = (1 << 29) - litebnn_high_product(half, guess);
    guess += saturated((int64_t)litebnn_high_product(guess, error) * 4);
  }
  return saturated((int64_t)guess * 2);
}

static int32_t leading_zeros(uint32_t value) {
  int32_t zeros = 0;
  for (; zeros < 32 && !(value >> 31); ++zeros) value <<= 1;
  return zeros;
}

void litebnn_softmax_int8(const int32_t exponents[256], const int8_t* input, int32_t rows, int32_t depth,
                          int8_t* output) {
  for (; rows > 0; --rows, input += depth, output += depth) {
    int32_t largest = -128, sum = 0;
    for (int32_t i = 0; i < depth; ++i) largest = input[i] > largest ? input[i] : largest;
    for (int32_t i = 0; i < depth; ++i) sum += litebnn_divide_by_power(exponents[largest - input[i]], 12);
    const int32_t headroom = leading_zeros((uint32_t)sum);
    const int32_t fraction = (int32_t)(((uint32_t)sum << headroom) - 0x80000000u);
    const int32_t scale = reciprocal_of_one_plus(fraction);
    for (int32_t i = 0; i < depth; ++i) {
      const int32_t product = litebnn_high_product(scale, exponents[largest - input[i]]);
      const int32_t value = litebnn_divide_by_power(product, 12 - headroom + 31 - 8) - 128;
      output[i] = (int8_t)litebnn_clamp(value, -128, 127);
    }
  }
}
