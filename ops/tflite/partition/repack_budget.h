// Keeps what a model may ask for in proportion to its size.
#pragma once

#include <cstdint>

#include "tflite/runtime/abi.h"

namespace litebnn {

// The bytes of constants that an interpreter's nodes may repack. Any number of nodes may share a constant, and each
// repacks it for itself, so that without a limit a small model could take any time and memory. Models that repeat a
// layer a dozen times stay far below it.
class RepackBudget {
 public:
  explicit RepackBudget(const TfLiteContext& context);
  // False after an error has been reported: the node's constants are more than is left.
  bool Take(TfLiteContext* context, const TfLiteNode& node);

 private:
  uint64_t left_;  // may be more than an address space of 32 bits holds
};

}  // namespace litebnn
