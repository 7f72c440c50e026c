// Where output pixels have their data.
#pragma once

#include <cstdint>

#include "kernels/table.h"

namespace litebnn {
// Every table's file has its own copy, compiled for its own CPU.
namespace {

// The staged windows of consecutive output pixels, without a division for each.
class WindowWalk {
 public:
  WindowWalk(const BconvTask& task, int64_t pixel)
      : task_(task),
        left_in_row_(task.output_width - pixel % task.output_width),
        row_(task.input + pixel / task.output_width * task.row_stride),
        window_(row_ + pixel % task.output_width * task.pixel_stride) {}

  // Fills windows[kCount].
  template <int kCount>
  void Next(const uint8_t** windows) {
    if (left_in_row_ > kCount) {
#pragma GCC unroll 8
      for (int i = 0; i < kCount; ++i) windows[i] = window_ + i * task_.pixel_stride;
      window_ += kCount * task_.pixel_stride;
      left_in_row_ -= kCount;
    } else {
      for (int i = 0; i < kCount; ++i) windows[i] = Next();
    }
  }

  const uint8_t* Next() {
    const uint8_t* window = window_;
    window_ += task_.pixel_stride;
    if (--left_in_row_ == 0) {
      left_in_row_ = task_.output_width;
      row_ += task_.row_stride;
      window_ = row_;
    }
    return window;
  }

 private:
  const BconvTask& task_;
  int64_t left_in_row_;
  const uint8_t* row_;
  const uint8_t* window_;
};

// Of the group's channel 0; only where the task has corrections.
inline const int32_t* CorrectionsOf(const BconvTask& task, int64_t pixel) {
  return task.corrections + task.row_correction[pixel / task.output_width] +
         task.column_correction[pixel % task.output_width];
}

}  // namespace
}  // namespace litebnn
