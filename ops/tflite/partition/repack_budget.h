// The file limits the memory for repacked weights in proportion to the size of the model.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tflite/runtime/abi.h"

namespace litebnn {

// The bytes that an interpreter's nodes may hold in addition to the model's own: repacked weights and padding
// corrections, which take time to compute too. Any number of nodes may share a constant, and each repacks it. Without a
// limit a small file could exhaust time and memory. Models that repeat a layer a dozen times stay below the limit.
class RepackBudget {
 public:
  explicit RepackBudget(const TfLiteContext& context);
  // Takes `bytes` from the budget. Returns false if fewer are left.
  bool Take(size_t bytes);
  uint64_t left() const { return left_; }

 private:
  uint64_t left_;  // 64 bits, because it may exceed a 32-bit address space
};

}  // namespace litebnn
