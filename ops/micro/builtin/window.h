/* The taps of a window that lie inside the input. */
#ifndef LITEBNN_WINDOW_H
#define LITEBNN_WINDOW_H

#include "litebnn_builtin.h"

/* The taps [begin, end) of a window along one axis that lie inside the input. `origin` is the input position of tap 0,
 * which may be outside the input. */
typedef struct litebnn_taps {
  int32_t begin, end, origin;
} litebnn_taps;

static inline litebnn_taps litebnn_taps_inside(int32_t output, int32_t stride, int32_t pad, int32_t taps,
                                               int32_t dilation, int32_t size) {
  litebnn_taps inside = {0, taps, output * stride - pad};
  if (inside.origin < 0) inside.begin = (dilation - 1 - inside.origin) / dilation;
  const int32_t room = size - inside.origin; /* positions from tap 0 to the end of the input */
  if (room <= (taps - 1) * dilation) inside.end = room <= 0 ? 0 : (room + dilation - 1) / dilation;
  return inside;
}

static inline litebnn_taps litebnn_taps_of_row(const litebnn_window* w, int32_t y) {
  return litebnn_taps_inside(y, w->stride_height, w->pad_top, w->filter_height, w->dilation_height, w->input_height);
}

static inline litebnn_taps litebnn_taps_of_column(const litebnn_window* w, int32_t x) {
  return litebnn_taps_inside(x, w->stride_width, w->pad_left, w->filter_width, w->dilation_width, w->input_width);
}

/* The index of the pixel that a tap reads. */
static inline int32_t litebnn_tap_pixel(const litebnn_window* w, litebnn_taps rows, litebnn_taps columns, int32_t ky,
                                        int32_t kx) {
  return (rows.origin + ky * w->dilation_height) * w->input_width + columns.origin + kx * w->dilation_width;
}

static inline float litebnn_clamp_to(litebnn_range_float range, float value) {
  value = value < range.low ? range.low : value;
  return value > range.high ? range.high : value;
}

#endif
