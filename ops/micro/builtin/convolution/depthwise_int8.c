/* DEPTHWISE_CONV_2D on int8. */
#include "int8_convolution.h"

#define DEPTHWISE_ROWS litebnn_depthwise_int8_rows
#include "depthwise.h"
