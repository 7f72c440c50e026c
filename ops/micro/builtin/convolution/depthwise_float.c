/* DEPTHWISE_CONV_2D on float. */
#include "float_convolution.h"

#define DEPTHWISE_ROWS litebnn_depthwise_float_rows
#include "depthwise.h"
