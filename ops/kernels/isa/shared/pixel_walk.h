// Where output pixels have their data.
#pragma once

#include <cstdint>

#include "kernels/isa/isa.h"

namespace litebnn {
// Every ISA's file has its own copy, compiled for its own CPU.
namespace {

// The staged windows of consecutive output pixels, without a division for each.
struct WindowWalk {
  const BconvTask& task;
  int64_t pixel;  // the first
  // Copies: a compiler has to take the kernels' stores for ones into the task.
  ptrdiff_t row_stride = task.row_stride, pixel_stride = task.pixel_stride;
  int64_t output_width = task.output_width;
  int64_t left_in_row = output_width - pixel % output_width;
  const uint8_t* row = task.input + pixel / output_width * row_stride;
  const uint8_t* window = row + pixel % output_width * pixel_stride;

  // Fills windows[kCount].
  template <int kCount>
  void Next(const uint8_t** windows) {
    if (left_in_row > kCount) {
#pragma GCC unroll 8
      for (int i = 0; i < kCount; ++i) windows[i] = window + i * pixel_stride;
      window += kCount * pixel_stride;
      left_in_row -= kCount;
    } else {
      for (int i = 0; i < kCount; ++i) windows[i] = Next();
    }
  }

  const uint8_t* Next() {
    const uint8_t* const next = window;
    window += pixel_stride;
    if (--left_in_row == 0) {
      left_in_row = output_width;
      row += row_stride;
      window = row;
    }
    return next;
  }
};

}  // namespace
}  // namespace litebnn
