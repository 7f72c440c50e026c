// Tensors that CONCATENATION puts side by side, along their last dimension.
#pragma once

#include <cstdint>
#include <vector>

#include "tflite/runtime/node.h"

namespace litebnn {

// More parts than a layer of any network reads.
constexpr size_t kMaxParts = 256;

struct Parts {
  std::vector<int32_t> channels;  // of each, or words
  std::vector<int32_t> shape;     // of the whole

  // Takes the node's first `count` inputs, at least one; those behind them have a value for each of the whole's
  // channels, or are left out. Reports an error and returns false where the parts are not all of the output's type, or
  // something does not go together.
  bool Read(const Node& node, size_t count);
  int64_t whole_channels() const { return shape.back(); }
  int64_t rows() const { return CountValues(shape, 0, shape.size() - 1); }
};

}  // namespace litebnn
