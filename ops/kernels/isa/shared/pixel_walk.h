// Where output pixels have their data.
#pragma once

#include <cstdint>

#include "kernels/isa/isa.h"

namespace litebnn {
// Every ISA's file has its own copy, compiled for its own CPU.
namespace {

// The staged windows of consecutive output pixels, without a division for each.
class WindowWalk {
 public:
  WindowWalk(const BconvTask& task, int64_t pixel)
      : row_stride_(task.row_stride),
        pixel_stride_(task.pixel_stride),
        output_width_(task.output_width),
        left_in_row_(task.output_width - pixel % task.output_width),
        row_(task.input + pixel / task.output_width * task.row_stride),
        window_(row_ + pixel % task.output_width * task.pixel_stride) {}

  // Fills windows[kCount].
  template <int kCount>
  void Next(const uint8_t** windows) {
    if (left_in_row_ > kCount) {
#pragma GCC unroll 8
      for (int i = 0; i < kCount; ++i) windows[i] = window_ + i * pixel_stride_;
      window_ += kCount * pixel_stride_;
      left_in_row_ -= kCount;
    } else {
      for (int i = 0; i < kCount; ++i) windows[i] = Next();
    }
  }

  const uint8_t* Next() {
    const uint8_t* window = window_;
    window_ += pixel_stride_;
    if (--left_in_row_ == 0) {
      left_in_row_ = output_width_;
      row_ += row_stride_;
      window_ = row_;
    }
    return window;
  }

 private:
  // Copies: a compiler has to take the kernels' stores for ones into the task.
  const ptrdiff_t row_stride_, pixel_stride_;
  const int64_t output_width_;
  int64_t left_in_row_;
  const uint8_t* row_;
  const uint8_t* window_;
};

}  // namespace
}  // namespace litebnn
