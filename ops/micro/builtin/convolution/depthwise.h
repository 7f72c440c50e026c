/* The loops of DEPTHWISE_CONV_2D, for any type: defines the function DEPTHWISE_ROWS. Layer, Value, Sum and the
 * functions of one element come from float_convolution.h or int8_convolution.h. */
void DEPTHWISE_ROWS(const Layer* layer, const Value* input, Value* output, int32_t first_row, int32_t rows) {
  const litebnn_window* w = &layer->window;
  const int32_t multiplier = w->channels_out / w->channels_in;
  for (int32_t y = first_row; y < first_row + rows; ++y) {
    const litebnn_taps row_taps = litebnn_taps_of_row(w, y);
    for (int32_t x = 0; x < w->output_width; ++x) {
      const litebnn_taps column_taps = litebnn_taps_of_column(w, x);
      for (int32_t o = 0; o < w->channels_out; ++o) {
        Sum sum = 0;
        for (int32_t ky = row_taps.begin; ky < row_taps.end; ++ky) {
          for (int32_t kx = column_taps.begin; kx < column_taps.end; ++kx) {
            const int32_t pixel = litebnn_tap_pixel(w, row_taps, column_taps, ky, kx);
            const Value weight = layer->weights[(ky * w->filter_width + kx) * w->channels_out + o];
            sum += (input[pixel * w->channels_in + o / multiplier] - input_zero_of(layer)) * weight;
          }
        }
        *output++ = output_of(layer, sum, o, 0);
      }
    }
  }
}
