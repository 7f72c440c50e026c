/* CONV_2D and FULLY_CONNECTED on float. */
#include "float_convolution.h"

#define CONV2D_ROWS litebnn_conv2d_float_rows
#include "conv2d.h"
