// The file declares the class Parts, which describes an image that a CONCATENATION along the last dimension joins from
// its inputs, the parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tflite/runtime/node.h"

namespace litebnn {

// The upper limit for the number of tensors that a node concatenates (its parts). No known network has more.
constexpr size_t kMaxParts = 256;

struct Parts {
  std::vector<int32_t> channels;  // of each part; words if packed
  std::vector<int32_t> shape;     // of the concatenated tensor

  // Reads the node's first `count` inputs, at least one. If `group` is not 1, reads the first input of each of `count`
  // groups of inputs instead. If their types or shapes do not match, reports an error and returns false.
  bool Read(const Node& node, size_t count, TfLiteType type, size_t group = 1);
  // Reads the node's first `count` inputs as Read does; their type must be that of the node's output. All further
  // inputs must be left out, or have one float per channel of the concatenated tensor.
  bool ReadWithConstants(const Node& node, size_t count);
  int64_t whole_channels() const { return shape.back(); }
  // The number of the first channel of a part in the concatenated tensor.
  int64_t FirstChannel(size_t part) const {
    return std::accumulate(channels.begin(), channels.begin() + static_cast<std::ptrdiff_t>(part), int64_t{0});
  }
  // The position of each part's first word in a row of the parts' packed signs, then the number of all words.
  std::vector<int64_t> FirstWords() const;
  int64_t rows() const { return CountValues(shape, 0, shape.size() - 1); }
};

}  // namespace litebnn
