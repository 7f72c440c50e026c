// Keeps what a model may ask for in proportion to its size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tflite/runtime/abi.h"

namespace litebnn {

// The bytes that an interpreter's nodes may hold beyond the model's own: repacked weights and corrections of padding,
// which take time to make as well. Any number of nodes may share a constant, and each repacks it for itself, so that
// without a limit a small model could take any time and memory. Models that repeat a layer a dozen times stay below it.
class RepackBudget {
 public:
  explicit RepackBudget(const TfLiteContext& context);
  // False where a node holds more than is left.
  bool Take(size_t bytes);
  uint64_t left() const { return left_; }

 private:
  uint64_t left_;  // may be more than an address space of 32 bits holds
};

}  // namespace litebnn
