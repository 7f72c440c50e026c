// Tensors that CONCATENATION puts side by side, along their last dimension.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tflite/runtime/node.h"

namespace litebnn {

// More parts than a layer of any network reads.
constexpr size_t kMaxParts = 256;

struct Parts {
  std::vector<int32_t> channels;  // of each, or words
  std::vector<int32_t> shape;     // of the whole

  // Takes the node's first `count` inputs, at least one, or the first of so many groups of inputs. Reports an error and
  // returns false where they are not all of that type, or do not go together.
  bool Read(const Node& node, size_t count, TfLiteType type, size_t group = 1);
  // The same, of the output's type; those behind them have a value for each of the whole's channels, or are left out.
  bool ReadWithConstants(const Node& node, size_t count);
  int64_t whole_channels() const { return shape.back(); }
  // The place of one of them in the whole.
  int64_t FirstChannel(size_t part) const {
    return std::accumulate(channels.begin(), channels.begin() + static_cast<std::ptrdiff_t>(part), int64_t{0});
  }
  int64_t rows() const { return CountValues(shape, 0, shape.size() - 1); }
};

}  // namespace litebnn
