/* MAX_POOL_2D and AVERAGE_POOL_2D on float and int8. */
#include "fixed_point.h"
#include "window.h"

static float max_of_window_float(const litebnn_window* w, const float* input, litebnn_taps rows, litebnn_taps columns,
                                 int32_t channel) {
  float largest = -3.402823466e+38f;
  for (int32_t ky = rows.begin; ky < rows.end; ++ky) {
    for (int32_t kx = columns.begin; kx < columns.end; ++kx) {
      const float value = input[litebnn_tap_pixel(w, rows, columns, ky, kx) * w->channels_in + channel];
      largest = largest < value ? value : largest;
    }
  }
  return largest;
}

static float mean_of_window_float(const litebnn_window* w, const float* input, litebnn_taps rows, litebnn_taps columns,
                                  int32_t channel) {
  const int32_t count = (rows.end - rows.begin) * (columns.end - columns.begin);
  float sum = 0.0f;
  for (int32_t ky = rows.begin; ky < rows.end; ++ky) {
    for (int32_t kx = columns.begin; kx < columns.end; ++kx) {
      sum += input[litebnn_tap_pixel(w, rows, columns, ky, kx) * w->channels_in + channel];
    }
  }
  return sum / (float)count;
}

static int32_t max_of_window_int8(const litebnn_window* w, const int8_t* input, litebnn_taps rows, litebnn_taps columns,
                                  int32_t channel) {
  int32_t largest = -128;
  for (int32_t ky = rows.begin; ky < rows.end; ++ky) {
    for (int32_t kx = columns.begin; kx < columns.end; ++kx) {
      const int32_t value = input[litebnn_tap_pixel(w, rows, columns, ky, kx) * w->channels_in + channel];
      largest = largest < value ? value : largest;
    }
  }
  return largest;
}

static int32_t mean_of_window_int8(const litebnn_window* w, const int8_t* input, litebnn_taps rows,
                                   litebnn_taps columns, int32_t channel) {
  const int32_t count = (rows.end - rows.begin) * (columns.end - columns.begin);
  int32_t sum = 0;
  for (int32_t ky = rows.begin; ky < rows.end; ++ky) {
    for (int32_t kx = columns.begin; kx < columns.end; ++kx) {
      sum += input[litebnn_tap_pixel(w, rows, columns, ky, kx) * w->channels_in + channel];
    }
  }
  return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

/* Defines the function for one kind of pool and one type, with a loop over the output. */
#define LITEBNN_POOL(kind, name, type, clamped)                                                              \
  void litebnn_##kind##_pool_##name##_rows(const litebnn_pool_##name* pool, const type* input, type* output, \
                                           int32_t first_row, int32_t rows) {                                \
    const litebnn_window* w = &pool->window;                                                                 \
    for (int32_t y = first_row; y < first_row + rows; ++y) {                                                 \
      const litebnn_taps row_taps = litebnn_taps_of_row(w, y);                                               \
      for (int32_t x = 0; x < w->output_width; ++x) {                                                        \
        const litebnn_taps column_taps = litebnn_taps_of_column(w, x);                                       \
        for (int32_t channel = 0; channel < w->channels_in; ++channel) {                                     \
          *output++ = clamped(LITEBNN_##kind(name)(w, input, row_taps, column_taps, channel), pool->range);  \
        }                                                                                                    \
      }                                                                                                      \
    }                                                                                                        \
  }
#define LITEBNN_max(name) max_of_window_##name
#define LITEBNN_average(name) mean_of_window_##name
#define CLAMPED_FLOAT(value, range) litebnn_clamp_to(range, value)
#define CLAMPED_INT8(value, range) (int8_t)litebnn_clamp(value, (range).low, (range).high)

LITEBNN_POOL(max, float, float, CLAMPED_FLOAT)
LITEBNN_POOL(average, float, float, CLAMPED_FLOAT)
LITEBNN_POOL(max, int8, int8_t, CLAMPED_INT8)
LITEBNN_POOL(average, int8, int8_t, CLAMPED_INT8)
