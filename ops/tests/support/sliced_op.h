#pragma once

#include <cstddef>

#include "tflite/ops/op_list.h"

namespace litebnn {

// An op that reads its first `part_count` inputs, the parts of an image, one after another. It computes nothing.
class PartedOp final : public Op {
 public:
  explicit PartedOp(size_t part_count) : part_count_(part_count) {}
  bool Prepare(const Node&) override { return true; }
  size_t PartCount() const override { return part_count_; }
  void Run(ThreadPool&, const void* const*, void* const*, void*, size_t) const override {}

 private:
  size_t part_count_;
};

}  // namespace litebnn
