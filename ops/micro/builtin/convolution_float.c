/* CONV_2D, FULLY_CONNECTED and DEPTHWISE_CONV_2D on float. */
#include "window.h"

typedef litebnn_conv2d_float Layer;
typedef float Value;
typedef float Sum;

/* The zero point of a float input is 0.0f. Compilers leave out its subtraction, because it changes no float. */
static inline Sum input_zero_of(const Layer* layer) {
  (void)layer;
  return 0.0f;
}

static inline Sum filter_zero_of(const Layer* layer) {
  (void)layer;
  return 0.0f;
}

static inline int32_t rounds_once(const Layer* layer) {
  (void)layer;
  return 0;
}

static inline Value output_of(const Layer* layer, Sum sum, int32_t o, int32_t is_rounded_once) {
  (void)is_rounded_once;
  if (layer->bias) sum += layer->bias[o];
  return litebnn_clamp_to(layer->range, sum);
}

#define CONV2D_ROWS litebnn_conv2d_float_rows
#define DEPTHWISE_ROWS litebnn_depthwise_float_rows
#include "convolution.h"
