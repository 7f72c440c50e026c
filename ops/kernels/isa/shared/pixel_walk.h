// The file computes the addresses of the windows of consecutive output pixels.
#pragma once

#include <cstdint>

#include "kernels/isa/isa.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

// A WindowWalk finds the addresses of the windows of consecutive output pixels, without a division per pixel.
struct WindowWalk {
  const BconvTask& task;
  int64_t pixel;  // the first pixel
  // The members are copies of the task's values. Stores of a kernel cannot modify these copies, so they can stay in
  // registers.
  ptrdiff_t row_stride = task.row_stride, pixel_stride = task.pixel_stride;
  int64_t output_width = task.output_width;
  int64_t left_in_row = output_width - pixel % output_width;
  const uint8_t* row = task.input + pixel / output_width * row_stride;
  const uint8_t* window = row + pixel % output_width * pixel_stride;

  // Sets windows[kCount] to the windows of the next kCount pixels.
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
