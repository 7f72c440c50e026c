/* QUANTIZE and DEQUANTIZE. */
#include "fixed_point.h"
#include "litebnn_builtin.h"

/* Rounds halves away from zero. Values are limited to -1024 and 1024, which are still out of the range of int8 after
 * any zero point is added. */
static int32_t rounded(float value) {
  if (!(value > -1024.0f)) return -1024;
  if (value > 1024.0f) return 1024;
  const int32_t whole = (int32_t)value;
  const float rest = value - (float)whole;
  return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

void litebnn_float_to_int8(float scale, int32_t zero_point, const float* input, int32_t count, int8_t* output) {
  for (int32_t i = 0; i < count; ++i) {
    output[i] = (int8_t)litebnn_clamp(rounded(input[i] / scale) + zero_point, -128, 127);
  }
}

void litebnn_int8_to_float(float scale, int32_t zero_point, const int8_t* input, int32_t count, float* output) {
  for (int32_t i = 0; i < count; ++i) output[i] = scale * (float)(input[i] - zero_point);
}
