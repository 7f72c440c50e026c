// An image that a CONCATENATION along the last dimension joins from its inputs. Each input is a slice of its channels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tflite/runtime/node.h"

namespace litebnn {

// The upper limit for the number of tensors that a node concatenates, its slices. No known network has more.
constexpr size_t kMaxSlices = 256;

struct ChannelSlices {
  std::vector<int32_t> channels;  // of each slice; words if packed
  std::vector<int32_t> shape;     // of the concatenated tensor

  // Reads the node's first `count` inputs, at least one. If `group` is not 1, reads the first input of each of `count`
  // groups of inputs instead. If their types or shapes do not match, reports an error and returns false.
  bool Read(const Node& node, size_t count, TfLiteType type, size_t group = 1);
  // Reads the node's first `count` inputs as Read does; their type must be that of the node's output. All further
  // inputs must be left out, or have one float per channel of the concatenated tensor.
  bool ReadWithConstants(const Node& node, size_t count);
  int64_t whole_channels() const { return shape.back(); }
  // The number of the first channel of a slice in the concatenated tensor.
  int64_t FirstChannel(size_t slice) const {
    return std::accumulate(channels.begin(), channels.begin() + static_cast<std::ptrdiff_t>(slice), int64_t{0});
  }
  // The position of each slice's first word in a row of the slices' packed signs, then the number of all words.
  std::vector<int64_t> FirstWords() const;
  int64_t rows() const { return CountValues(shape, 0, shape.size() - 1); }
};

}  // namespace litebnn
