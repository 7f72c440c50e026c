/* CONV_2D and FULLY_CONNECTED on int8. */
#include "fixed_point.h"
#include "window.h"

static int32_t sum_of_window(const litebnn_conv2d_int8* layer, const int8_t* input, const int8_t* weights,
                             litebnn_taps rows, litebnn_taps columns, int32_t first_channel) {
  const litebnn_window* w = &layer->window;
  const int32_t depth = layer->group_channels;
  const int32_t is_whole = depth == w->channels_in && w->dilation_width == 1;
  const int32_t run = is_whole ? (columns.end - columns.begin) * depth : depth;
  int32_t sum = 0;
  for (int32_t ky = rows.begin; ky < rows.end; ++ky) {
    for (int32_t kx = columns.begin; kx < columns.end; ++kx) {
      const int8_t* x = input + litebnn_tap_pixel(w, rows, columns, ky, kx) * w->channels_in + first_channel;
      const int8_t* v = weights + (ky * w->filter_width + kx) * depth;
      for (int32_t i = 0; i < run; ++i) sum += (x[i] - layer->input_zero_point) * (v[i] - layer->filter_zero_point);
      if (is_whole) break;
    }
  }
  return sum;
}

void litebnn_conv2d_int8_rows(const litebnn_conv2d_int8* layer, const int8_t* input, int8_t* output, int32_t first_row,
                              int32_t rows) {
  const litebnn_window* w = &layer->window;
  const int32_t filter_size = w->filter_height * w->filter_width * layer->group_channels;
  const int32_t group_outputs = w->channels_out / (w->channels_in / layer->group_channels);
  for (int32_t y = first_row; y < first_row + rows; ++y) {
    const litebnn_taps row_taps = litebnn_taps_of_row(w, y);
    for (int32_t x = 0; x < w->output_width; ++x) {
      const litebnn_taps column_taps = litebnn_taps_of_column(w, x);
      for (int32_t o = 0; o < w->channels_out; ++o) {
        const int32_t first_channel = o / group_outputs * layer->group_channels;
        const int8_t* weights = layer->weights + o * filter_size;
        int32_t sum = sum_of_window(layer, input, weights, row_taps, column_taps, first_channel);
        if (layer->bias) sum += layer->bias[o];
        const int32_t multiplier = layer->multipliers[o], shift = layer->shifts[o];
        sum = layer->rounds_once ? litebnn_scale_once(sum, multiplier, shift) : litebnn_scale(sum, multiplier, shift);
        sum += layer->output_zero_point;
        *output++ = (int8_t)litebnn_clamp(sum, layer->range.low, layer->range.high);
      }
    }
  }
}
