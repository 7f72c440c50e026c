/* TensorFlow Lite's own ops of small classifiers for microcontrollers: C99, no heap, no state, no libc.
 *
 * Float ops add and multiply in the order of TensorFlow Lite's reference kernels. Int8 ops return what these return,
 * bit for bit. Compile without contraction of a product and a sum to one instruction (-ffp-contract=off).
 *
 * Tensors are one image, [height][width][channels]. Functions with `first_row` and `rows` compute only these rows of
 * the output, and `output` points to the first of them. Nothing is checked at run time: the exporter has checked the
 * model. Unless a function says otherwise, `output` may be its first input.
 */
#ifndef LITEBNN_BUILTIN_H
#define LITEBNN_BUILTIN_H

#include <stdint.h>

#include "litebnn_micro.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The largest number of axes of litebnn_copy, litebnn_broadcast and litebnn_reduction. */
enum { LITEBNN_AXES = 6 };

/* ---- Windows: convolutions, dense layers and pools; `output` is not the input ---- */
typedef struct litebnn_window {
  int32_t input_height, input_width, channels_in;
  int32_t output_width, channels_out;
  int32_t filter_height, filter_width, stride_height, stride_width, dilation_height, dilation_width;
  int32_t pad_top, pad_left;
} litebnn_window;

/* The limits to which a fused activation clamps outputs. Without an activation, they are the limits of the type. */
typedef struct litebnn_range_float {
  float low, high;
} litebnn_range_float;
typedef struct litebnn_range_int8 {
  int32_t low, high;
} litebnn_range_int8;

/* A convolution. A dense layer is a convolution with a 1x1 filter over an image of one row, in which each pixel is one
 * input vector. */
typedef struct litebnn_conv2d_float {
  litebnn_window window;
  int32_t group_channels; /* input channels of a group */
  const float* weights;   /* [channels_out][filter_height][filter_width][group_channels] */
  const float* bias;      /* [channels_out]; null if there is none */
  litebnn_range_float range;
} litebnn_conv2d_float;

/* A sum of products is scaled by multiplier * 2^(shift - 31). As in gemmlowp, the product with the multiplier is
 * rounded to 32 bits, and after the shift it is rounded again. If `rounds_once` is true, only the final result is
 * rounded, as in some kernels of LiteRT. */
typedef struct litebnn_conv2d_int8 {
  litebnn_window window;
  int32_t group_channels;
  const int8_t* weights;
  const int32_t* bias;
  const int32_t* multipliers; /* [channels_out] */
  const int8_t* shifts;       /* [channels_out] */
  int32_t input_zero_point, filter_zero_point, output_zero_point;
  int32_t rounds_once; /* only for litebnn_conv2d_int8_rows */
  litebnn_range_int8 range;
} litebnn_conv2d_int8;

void litebnn_conv2d_float_rows(const litebnn_conv2d_float* layer, const float* input, float* output, int32_t first_row,
                               int32_t rows);
void litebnn_conv2d_int8_rows(const litebnn_conv2d_int8* layer, const int8_t* input, int8_t* output, int32_t first_row,
                              int32_t rows);

/* Depthwise convolutions use the same structures, with weights [filter_height][filter_width][channels_out]. Output
 * channel o reads the input channel o / (channels_out / channels_in). `group_channels` is unused. */
void litebnn_depthwise_float_rows(const litebnn_conv2d_float* layer, const float* input, float* output,
                                  int32_t first_row, int32_t rows);
void litebnn_depthwise_int8_rows(const litebnn_conv2d_int8* layer, const int8_t* input, int8_t* output,
                                 int32_t first_row, int32_t rows);

typedef struct litebnn_pool_float {
  litebnn_window window;
  litebnn_range_float range;
} litebnn_pool_float;
typedef struct litebnn_pool_int8 {
  litebnn_window window;
  litebnn_range_int8 range;
} litebnn_pool_int8;

void litebnn_max_pool_float_rows(const litebnn_pool_float* pool, const float* input, float* output, int32_t first_row,
                                 int32_t rows);
void litebnn_max_pool_int8_rows(const litebnn_pool_int8* pool, const int8_t* input, int8_t* output, int32_t first_row,
                                int32_t rows);
void litebnn_average_pool_float_rows(const litebnn_pool_float* pool, const float* input, float* output,
                                     int32_t first_row, int32_t rows);
void litebnn_average_pool_int8_rows(const litebnn_pool_int8* pool, const int8_t* input, int8_t* output,
                                    int32_t first_row, int32_t rows);

/* ---- Some rows of a binary convolution ---- */
void litebnn_bconv2d_bits_rows(const litebnn_bconv2d* layer, const uint32_t* input, uint32_t* output, uint32_t* scratch,
                               int32_t first_row, int32_t rows);
void litebnn_bconv2d_int8_rows(const litebnn_bconv2d* layer, const uint32_t* input, int8_t* output, uint32_t* scratch,
                               int32_t first_row, int32_t rows);
void litebnn_bconv2d_float_rows(const litebnn_bconv2d* layer, const uint32_t* input, float* output, uint32_t* scratch,
                                int32_t first_row, int32_t rows);

/* ---- Elementwise ops of two inputs ----
 *
 * The output has `sizes`; a stride says how many elements of an input lie between neighbours, 0 where it is broadcast.
 * `output` may be an input that is not broadcast.
 */
typedef struct litebnn_broadcast {
  int32_t sizes[LITEBNN_AXES], first[LITEBNN_AXES], second[LITEBNN_AXES];
} litebnn_broadcast;
typedef struct litebnn_binary_float {
  litebnn_broadcast broadcast;
  litebnn_range_float range;
} litebnn_binary_float;

void litebnn_add_float(const litebnn_binary_float* op, const float* first, const float* second, float* output);
void litebnn_sub_float(const litebnn_binary_float* op, const float* first, const float* second, float* output);
void litebnn_mul_float(const litebnn_binary_float* op, const float* first, const float* second, float* output);
void litebnn_div_float(const litebnn_binary_float* op, const float* first, const float* second, float* output);
void litebnn_maximum_float(const litebnn_binary_float* op, const float* first, const float* second, float* output);
void litebnn_minimum_float(const litebnn_binary_float* op, const float* first, const float* second, float* output);
/* `second` has the slopes. */
void litebnn_prelu_float(const litebnn_binary_float* op, const float* first, const float* second, float* output);

typedef struct litebnn_binary_int8 {
  litebnn_broadcast broadcast;
  int32_t first_zero_point, second_zero_point, output_zero_point;
  int32_t first_multiplier, second_multiplier, output_multiplier;
  int32_t first_shift, second_shift, output_shift;
  litebnn_range_int8 range;
} litebnn_binary_int8;

/* ADD and SUB. For SUB, `second_multiplier` is negative. */
void litebnn_add_int8(const litebnn_binary_int8* op, const int8_t* first, const int8_t* second, int8_t* output);
void litebnn_mul_int8(const litebnn_binary_int8* op, const int8_t* first, const int8_t* second, int8_t* output);
/* PRELU. `first_multiplier` scales values of at least 0. `output_multiplier` scales the products of negative values and
 * their slopes. */
void litebnn_prelu_int8(const litebnn_binary_int8* op, const int8_t* first, const int8_t* second, int8_t* output);
/* Both inputs and the output must have the same scale and zero point. */
void litebnn_maximum_int8(const litebnn_binary_int8* op, const int8_t* first, const int8_t* second, int8_t* output);
void litebnn_minimum_int8(const litebnn_binary_int8* op, const int8_t* first, const int8_t* second, int8_t* output);

/* ---- Elementwise ops of one input ---- */
void litebnn_clamp_float(litebnn_range_float range, const float* input, int32_t count, float* output);
void litebnn_leaky_relu_float(float slope, const float* input, int32_t count, float* output);
void litebnn_hard_swish_float(const float* input, int32_t count, float* output);
void litebnn_abs_float(const float* input, int32_t count, float* output);
void litebnn_neg_float(const float* input, int32_t count, float* output);
void litebnn_sign_float(const float* input, int32_t count, float* output);
void litebnn_square_float(const float* input, int32_t count, float* output);
void litebnn_logistic_float(const float* input, int32_t count, float* output);
void litebnn_tanh_float(const float* input, int32_t count, float* output);
void litebnn_elu_float(const float* input, int32_t count, float* output);

/* Computes any function of an int8 value: the result is table[value + 128]. */
void litebnn_lookup_int8(const int8_t table[256], const int8_t* input, int32_t count, int8_t* output);

/* QUANTIZE rounds half away from zero. */
void litebnn_float_to_int8(float scale, int32_t zero_point, const float* input, int32_t count, int8_t* output);
void litebnn_int8_to_float(float scale, int32_t zero_point, const int8_t* input, int32_t count, float* output);

/* ---- Rows: softmax ---- */
void litebnn_softmax_float(float beta, const float* input, int32_t rows, int32_t depth, float* output);
/* The value exponents[d] is exp(-d * scale * beta) * 2^31 for a value that is d below its row's maximum. It is 0 for
 * differences that the reference kernel ignores. */
void litebnn_softmax_int8(const int32_t exponents[256], const int8_t* input, int32_t rows, int32_t depth,
                          int8_t* output);

/* ---- Reductions; `output` is not the input ----
 *
 * Axes that are kept have `sizes` above 0 in `kept`, and 1 in `reduced`. Elements are summed in their order.
 */
typedef struct litebnn_reduction {
  int32_t kept[LITEBNN_AXES], reduced[LITEBNN_AXES], strides[LITEBNN_AXES];
  int32_t count; /* elements of the input for one of the output */
} litebnn_reduction;
typedef struct litebnn_mean_int8 {
  litebnn_reduction reduction;
  int32_t input_zero_point, output_zero_point, multiplier, shift;
} litebnn_mean_int8;

void litebnn_mean_float(const litebnn_reduction* reduction, const float* input, float* output);
void litebnn_sum_float(const litebnn_reduction* reduction, const float* input, float* output);
void litebnn_reduce_max_float(const litebnn_reduction* reduction, const float* input, float* output);
void litebnn_reduce_min_float(const litebnn_reduction* reduction, const float* input, float* output);
void litebnn_reduce_mean_int8(const litebnn_mean_int8* op, const int8_t* input, int8_t* output);

/* ---- Moves: pad, slice, transpose, concatenate; `output` is not the input ----
 *
 * `output[sum of i * output_strides]` becomes `input[sum of i * input_strides]`, in elements from the given pointers.
 */
typedef struct litebnn_move {
  int32_t sizes[LITEBNN_AXES], input_strides[LITEBNN_AXES], output_strides[LITEBNN_AXES];
  int32_t input_start, output_start;
} litebnn_move;

void litebnn_move_bytes(const litebnn_move* move, const int8_t* input, int8_t* output);
void litebnn_move_floats(const litebnn_move* move, const float* input, float* output);
void litebnn_move_words(const litebnn_move* move, const uint32_t* input, uint32_t* output);
void litebnn_fill_bytes(int8_t value, int32_t count, int8_t* output);
void litebnn_fill_floats(float value, int32_t count, float* output);

#ifdef __cplusplus
}
#endif

#endif
