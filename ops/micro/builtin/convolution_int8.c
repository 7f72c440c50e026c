/* CONV_2D, FULLY_CONNECTED and DEPTHWISE_CONV_2D on int8. */
#include "fixed_point.h"
#include "window.h"

typedef litebnn_conv2d_int8 Layer;
typedef int8_t Value;
typedef int32_t Sum;

static inline Sum input_zero_of(const Layer* layer) { return layer->input_zero_point; }

static inline Sum filter_zero_of(const Layer* layer) { return layer->filter_zero_point; }

static inline int32_t rounds_once(const Layer* layer) { return layer->rounds_once; }

static inline Value output_of(const Layer* layer, Sum sum, int32_t o, int32_t is_rounded_once) {
  if (layer->bias) sum += layer->bias[o];
  const int32_t multiplier = layer->multipliers[o], shift = layer->shifts[o];
  sum = is_rounded_once ? litebnn_scale_once(sum, multiplier, shift) : litebnn_scale(sum, multiplier, shift);
  return (Value)litebnn_clamp(sum + layer->output_zero_point, layer->range.low, layer->range.high);
}

#define CONV2D_ROWS litebnn_conv2d_int8_rows
#define DEPTHWISE_ROWS litebnn_depthwise_int8_rows
#include "convolution.h"
