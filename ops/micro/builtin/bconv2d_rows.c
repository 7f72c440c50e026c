/* Some rows of a binary convolution. */
#include "litebnn_builtin.h"

static litebnn_bconv2d part_of(const litebnn_bconv2d* layer, int32_t first_row, int32_t rows) {
  litebnn_bconv2d part = *layer;
  part.output_height = rows;
  part.pad_top -= first_row * layer->stride_height;
  if (part.row_class) part.row_class += first_row;
  return part;
}

void litebnn_bconv2d_bits_rows(const litebnn_bconv2d* layer, const uint32_t* input, uint32_t* output, uint32_t* scratch,
                               int32_t first_row, int32_t rows) {
  const litebnn_bconv2d part = part_of(layer, first_row, rows);
  litebnn_bconv2d_bits(&part, input, output, scratch);
}

void litebnn_bconv2d_int8_rows(const litebnn_bconv2d* layer, const uint32_t* input, int8_t* output, uint32_t* scratch,
                               int32_t first_row, int32_t rows) {
  const litebnn_bconv2d part = part_of(layer, first_row, rows);
  litebnn_bconv2d_int8(&part, input, output, scratch);
}

void litebnn_bconv2d_float_rows(const litebnn_bconv2d* layer, const uint32_t* input, float* output, uint32_t* scratch,
                                int32_t first_row, int32_t rows) {
  const litebnn_bconv2d part = part_of(layer, first_row, rows);
  litebnn_bconv2d_float(&part, input, output, scratch);
}
