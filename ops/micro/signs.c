/* Packing signs to bits, and unpacking bits to signs. */
#include <string.h>

#include "litebnn_micro.h"

/* Packs the signs of rows of values. IS_NEGATIVE(i) returns the sign bit of value i of the current row. */
#define PACK_ROWS(IS_NEGATIVE)                                             \
  for (int32_t row = 0; row < rows; ++row, input += channels) {            \
    for (int32_t first = 0; first < channels; first += 32) {               \
      const int32_t count = channels - first < 32 ? channels - first : 32; \
      uint32_t word = 0;                                                   \
      for (int32_t i = count - 1; i >= 0; --i) {                           \
        word = word << 1 | (IS_NEGATIVE(first + i) ? 1u : 0u);             \
      }                                                                    \
      *output++ = word;                                                    \
    }                                                                      \
  }

/* True if a float is below 0, which excludes -0.0 and NaN. The function compares the float's bits as integers, which is
 * faster on CPUs without a floating-point unit. */
static inline int is_negative(const float* value) {
  uint32_t bits;
  memcpy(&bits, value, sizeof bits);
  return bits - 0x80000001u < 0x7F800000u;
}

void litebnn_quantize_float(const float* input, int32_t rows, int32_t channels, uint32_t* output) {
#define IS_NEGATIVE(i) is_negative(input + (i))
  PACK_ROWS(IS_NEGATIVE)
#undef IS_NEGATIVE
}

void litebnn_quantize_int8(const int8_t* input, int32_t rows, int32_t channels, int32_t zero_point, uint32_t* output) {
#define IS_NEGATIVE(i) (input[i] < zero_point)
  PACK_ROWS(IS_NEGATIVE)
#undef IS_NEGATIVE
}

void litebnn_quantize_bool(const uint8_t* input, int32_t rows, int32_t channels, uint32_t* output){
#define IS_NEGATIVE(i) (!input[i])
    PACK_ROWS(IS_NEGATIVE)
#undef IS_NEGATIVE
}

#define UNPACK_ROWS(plus_one, minus_one)                 \
  for (int32_t row = 0; row < rows; ++row) {             \
    uint32_t word = 0;                                   \
    for (int32_t i = 0; i < channels; ++i, word >>= 1) { \
      if (i % 32 == 0) word = *input++;                  \
      *output++ = word & 1u ? (minus_one) : (plus_one);  \
    }                                                    \
  }

void litebnn_dequantize_float(const uint32_t* input, int32_t rows, int32_t channels, float* output) {
  UNPACK_ROWS(1.0f, -1.0f)
}

void litebnn_dequantize_int8(const uint32_t* input, int32_t rows, int32_t channels, int8_t plus_one, int8_t minus_one,
                             void* values) {
  int8_t* output = values;
  UNPACK_ROWS(plus_one, minus_one)
}
