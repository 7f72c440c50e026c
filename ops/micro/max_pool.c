/* Max pools of packed signs. A 1 bit is -1, so the maximum of a window is the AND of its bits. */
#include "litebnn_micro.h"

typedef struct {
  int32_t first, end;
} Range;

/* The part of a window that lies in the input. */
static Range clip(int32_t first, int32_t length, int32_t size) {
  Range range;
  range.first = first < 0 ? 0 : first;
  range.end = first + length < size ? first + length : size;
  return range;
}

void litebnn_bmax_pool2d_run(const litebnn_bmax_pool2d* p, const uint32_t* input, uint32_t* output) {
  for (int32_t y = 0; y < p->output_height; ++y) {
    const Range rows = clip(y * p->stride_height - p->pad_top, p->filter_height, p->input_height);
    for (int32_t x = 0; x < p->output_width; ++x) {
      const Range columns = clip(x * p->stride_width - p->pad_left, p->filter_width, p->input_width);
      for (int32_t word = 0; word < p->words; ++word) {
        uint32_t bits = ~(uint32_t)0;
        for (int32_t row = rows.first; row < rows.end; ++row) {
          const uint32_t* from = input + (row * p->input_width + columns.first) * p->words + word;
          for (int32_t left = columns.end - columns.first; left > 0; --left, from += p->words) bits &= *from;
        }
        *output++ = bits;
      }
    }
  }
}
