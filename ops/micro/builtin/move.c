/* Ops that only move values. */
#include "axes.h"

enum { INNER = LITEBNN_AXES - 1 };

#define LITEBNN_MOVE(name, type)                                                                     \
  void litebnn_move_##name(const litebnn_move* move, const type* input, type* output) {              \
    const int32_t* const strides[2] = {move->input_strides, move->output_strides};                   \
    int32_t position[LITEBNN_AXES] = {0}, offsets[2] = {move->input_start, move->output_start};      \
    const int32_t from_stride = move->input_strides[INNER], to_stride = move->output_strides[INNER]; \
    do {                                                                                             \
      const type* from = input + offsets[0];                                                         \
      type* to = output + offsets[1];                                                                \
      for (int32_t i = 0; i < move->sizes[INNER]; ++i) to[i * to_stride] = from[i * from_stride];    \
    } while (litebnn_next(move->sizes, position, 2, strides, offsets));                              \
  }

LITEBNN_MOVE(bytes, int8_t)
LITEBNN_MOVE(floats, float)
LITEBNN_MOVE(words, uint32_t)

#define LITEBNN_FILL(name, type)                                      \
  void litebnn_fill_##name(type value, int32_t count, type* output) { \
    for (int32_t i = 0; i < count; ++i) output[i] = value;            \
  }

LITEBNN_FILL(bytes, int8_t)
LITEBNN_FILL(floats, float)
