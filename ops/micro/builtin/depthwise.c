/* DEPTHWISE_CONV_2D on float and int8. */
#include "fixed_point.h"
#include "window.h"

void litebnn_depthwise_float_rows(const litebnn_conv2d_float* layer, const float* input, float* output,
                                  int32_t first_row, int32_t rows) {
  const litebnn_window* w = &layer->window;
  const int32_t multiplier = w->channels_out / w->channels_in;
  for (int32_t y = first_row; y < first_row + rows; ++y) {
    const litebnn_taps row_taps = litebnn_taps_of_row(w, y);
    for (int32_t x = 0; x < w->output_width; ++x) {
      const litebnn_taps column_taps = litebnn_taps_of_column(w, x);
      for (int32_t o = 0; o < w->channels_out; ++o) {
        float sum = 0.0f;
        for (int32_t ky = row_taps.begin; ky < row_taps.end; ++ky) {
          for (int32_t kx = column_taps.begin; kx < column_taps.end; ++kx) {
            const int32_t pixel = litebnn_tap_pixel(w, row_taps, column_taps, ky, kx);
            const float weight = layer->weights[(ky * w->filter_width + kx) * w->channels_out + o];
            sum += input[pixel * w->channels_in + o / multiplier] * weight;
          }
        }
        if (layer->bias) sum += layer->bias[o];
        *output++ = litebnn_clamp_to(layer->range, sum);
      }
    }
  }
}

void litebnn_depthwise_int8_rows(const litebnn_conv2d_int8* layer, const int8_t* input, int8_t* output,
                                 int32_t first_row, int32_t rows) {
  const litebnn_window* w = &layer->window;
  const int32_t multiplier = w->channels_out / w->channels_in;
  for (int32_t y = first_row; y < first_row + rows; ++y) {
    const litebnn_taps row_taps = litebnn_taps_of_row(w, y);
    for (int32_t x = 0; x < w->output_width; ++x) {
      const litebnn_taps column_taps = litebnn_taps_of_column(w, x);
      for (int32_t o = 0; o < w->channels_out; ++o) {
        int32_t sum = 0;
        for (int32_t ky = row_taps.begin; ky < row_taps.end; ++ky) {
          for (int32_t kx = column_taps.begin; kx < column_taps.end; ++kx) {
            const int32_t pixel = litebnn_tap_pixel(w, row_taps, column_taps, ky, kx);
            const int32_t weight = layer->weights[(ky * w->filter_width + kx) * w->channels_out + o];
            sum += (input[pixel * w->channels_in + o / multiplier] - layer->input_zero_point) * weight;
          }
        }
        if (layer->bias) sum += layer->bias[o];
        sum = litebnn_scale(sum, layer->multipliers[o], layer->shifts[o]) + layer->output_zero_point;
        *output++ = (int8_t)litebnn_clamp(sum, layer->range.low, layer->range.high);
      }
    }
  }
}
