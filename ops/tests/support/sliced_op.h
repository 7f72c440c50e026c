#pragma once

#include <cstddef>

#include "tflite/ops/op_list.h"

namespace litebnn {

// An op that reads its first `slice_count` inputs, the slices of an image, one after another. It computes nothing.
class SlicedOp final : public Op {
 public:
  explicit SlicedOp(size_t slice_count) : slice_count_(slice_count) {}
  bool Prepare(const Node&) override { return true; }
  size_t SliceCount() const override { return slice_count_; }
  void Run(ThreadPool&, const void* const*, void* const*, void*, size_t) const override {}

 private:
  size_t slice_count_;
};

}  // namespace litebnn
