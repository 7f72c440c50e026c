/* The binary ops of litebnn for microcontrollers: C99, no heap, no state, no libc but memcpy.
 *
 * Bits are those of docs/ops.md: bit 1 is -1, channel 0 is the least significant bit of the first word, and the unused
 * bits of a pixel's last word are 0. Tensors are one image, [height][width][channels]. Callers call once per image.
 * Nothing is checked at run time: the exporter has checked the model.
 *
 * converter/litebnn/micro/pack.py makes the constant arrays in the order written here, and the size of the scratch
 * memory. Constant arrays and tensors are aligned to 4 bytes; for litebnn_helium, its weights to 16.
 */
#ifndef LITEBNN_MICRO_H
#define LITEBNN_MICRO_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Convolution and dense layers ----
 *
 * For each output pixel, the bits of its window are gathered: the taps by rows, for each tap `tap_bits` bits of the
 * group's channels. A padded tap is 0 bits. The gathered bits are filled with zeros to `window_words` words. A kernel
 * then counts the bits that differ from the weights, for a block of output channels at once, one channel in each lane.
 * A group has ceil(channels_out / groups / lanes) blocks; channels that the last block lacks have weights and presets
 * of 0. In this text, channel j of a block is in lane j if the output is bits. If it is int8 or float, its lane for
 * kernels of more than one is j / 32 * 32 + (0, 16, 8 or 24 for j % 4 = 0 to 3) + j % 32 / 4.
 *
 *   kernel            lanes  words of a window   weights of a block, n = 32 * window_words
 *   litebnn_popcount  1      any                 [n / 32]: the channel's filter as a window. Filters of the model file
 *                                                are in this order if tap_bits is a multiple of 32.
 *   litebnn_pairs     32     any                 [n / 32][32]: a word for each window bit, see below
 *   litebnn_pairs_of_masks                       the same, for CPUs that have no instruction for a bit's mask: RISC-V
 *   litebnn_triples   32     a multiple of 3     [n / 96][32][5]: see below
 *   litebnn_helium    128    any                 [n / 32][32][4]: as litebnn_pairs, with 4 words of 32 channels.
 *                                                Only for CPUs with MVE.
 *
 * In the weights of pairs, triples and helium, the second index i stands for bit i % 4 * 8 + i / 4 of a window's word,
 * and bit j of each word of weights belongs to channel j. Pairs have the weight of bit i at even i. At odd i, they have
 * the exclusive or of the weights of the bits i - 1 and i. Triples combine three weights a, b and c, which are those of
 * bit i of the window's words 3t, 3t + 1 and 3t + 2. The five words of a triple are a ^ b ^ c and the majorities
 * maj(a, b, c), maj(a, !b, !c), maj(!a, b, !c) and maj(!a, !b, c).
 *
 * Presets are the initial values of the counters. There is a set of presets for each class of pixels. With zero
 * padding, the pixels whose windows have the same padded taps are a class; otherwise all pixels are one class. A set
 * has the presets of all blocks, one block after the other:
 *
 *   litebnn_popcount: an int32 for each channel. For bits, the threshold: bit = count > threshold. For int8 and float,
 *     a number that is added to the count. A null pointer stands for zeros.
 *   others: [planes + 1][lanes / 32] words. Bit j of plane p is bit p of the preset of channel j. For bits, the preset
 *     is 2^planes - 1 - threshold, so that a counter overflows where the threshold is exceeded; the last plane has the
 *     channels whose output is always 1. For int8 and float, the preset is added to the count, which must not
 *     overflow, and the last plane is 0.
 *
 * The value of a channel is clamp(depth - 2 * (count + preset)) * multiplier + bias, rounded after the product and
 * after the sum. `depth` is that of the pixel's class. For int8, integers may be used instead. The value is then the
 * clamped number times fixed_multiplier, plus fixed_bias, shifted right by fixed_shift, and saturated to int8. The zero
 * point is included in fixed_bias.
 */
typedef struct litebnn_kernel litebnn_kernel;

extern const litebnn_kernel litebnn_popcount;
extern const litebnn_kernel litebnn_pairs;
extern const litebnn_kernel litebnn_pairs_of_masks;
extern const litebnn_kernel litebnn_triples;
extern const litebnn_kernel litebnn_helium;

/* A dense layer is an image of 1x1 pixel and a filter of 1x1; rows of a dense layer are pixels of one row. */
typedef struct litebnn_bconv2d {
  const litebnn_kernel* kernel;
  const uint32_t* weights;         /* [groups][blocks of a group][words of a block] */
  const uint32_t* presets;         /* [classes][groups][blocks of a group][words of a block's presets] */
  const int32_t* depths;           /* [classes]; for int8 and float */
  const uint16_t* row_class;       /* [output_height]; null if there is one class */
  const uint16_t* column_class;    /* [output_width]; the class is row_class[y] + column_class[x] */
  const float* multiplier;         /* [channels_out]; for int8 and float. For int8, divided by the output's scale */
  const float* bias;               /* [channels_out]; as multiplier */
  const int32_t* fixed_multiplier; /* [channels_out]; null if int8 is computed by multiplier and bias */
  const int32_t* fixed_bias;       /* [channels_out] */
  const uint8_t* fixed_shift;      /* [channels_out] */
  int32_t planes; /* of a counter: 5, 4 or 3 of pairs, triples or helium, and 3, 3 or 2 times any number */
  int32_t window_words;
  int32_t tap_bits; /* bits of a tap in the window: the group's channels, or these rounded up to whole words */
  int32_t clamp_min, clamp_max; /* the fused activation, on the integer */
  int32_t output_zero_point;    /* for int8 */
  int32_t input_height, input_width, channels_in;
  int32_t output_height, output_width, channels_out;
  int32_t groups; /* if above 1, channels_in / groups is a multiple of 32 */
  int32_t filter_height, filter_width, stride_height, stride_width, dilation_height, dilation_width;
  int32_t pad_top, pad_left;
} litebnn_bconv2d;

/* Returns the number of 32-bit words that the array `scratch` of the functions below must have. */
int32_t litebnn_bconv2d_scratch_words(const litebnn_bconv2d* layer);

/* `output` has ceil(channels_out / 32) words for each pixel. */
void litebnn_bconv2d_bits(const litebnn_bconv2d* layer, const uint32_t* input, uint32_t* output, uint32_t* scratch);
void litebnn_bconv2d_int8(const litebnn_bconv2d* layer, const uint32_t* input, int8_t* output, uint32_t* scratch);
void litebnn_bconv2d_float(const litebnn_bconv2d* layer, const uint32_t* input, float* output, uint32_t* scratch);

/* ---- Signs ----
 *
 * Rows of `channels` values become rows of ceil(channels / 32) words, and back. A bool is a byte, 0 or 1.
 */
void litebnn_quantize_float(const float* input, int32_t rows, int32_t channels, uint32_t* output);
void litebnn_quantize_int8(const int8_t* input, int32_t rows, int32_t channels, int32_t zero_point, uint32_t* output);
void litebnn_quantize_bool(const uint8_t* input, int32_t rows, int32_t channels, uint32_t* output);

void litebnn_dequantize_float(const uint32_t* input, int32_t rows, int32_t channels, float* output);
/* `values` is an array of int8_t or of bool.
 * `plus_one` and `minus_one` are the quantized values of +1 and -1; for bool, 1 and 0.
 */
void litebnn_dequantize_int8(const uint32_t* input, int32_t rows, int32_t channels, int8_t plus_one, int8_t minus_one,
                             void* values);

/* ---- Max pools of signs ---- */
typedef struct litebnn_bmax_pool2d {
  int32_t words; /* of a pixel */
  int32_t input_height, input_width, output_height, output_width;
  int32_t filter_height, filter_width, stride_height, stride_width;
  int32_t pad_top, pad_left;
} litebnn_bmax_pool2d;

void litebnn_bmax_pool2d_run(const litebnn_bmax_pool2d* pool, const uint32_t* input, uint32_t* output);

#ifdef __cplusplus
}
#endif

#endif
