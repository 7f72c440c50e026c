/* CONV_2D and FULLY_CONNECTED on int8. */
#include "int8_convolution.h"

#define CONV2D_ROWS litebnn_conv2d_int8_rows
#include "conv2d.h"
