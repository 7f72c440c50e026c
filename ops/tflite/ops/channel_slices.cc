#include "tflite/ops/channel_slices.h"

#include <algorithm>
#include <limits>

#include "tflite/ops/op_list.h"

namespace litebnn {

bool ChannelSlices::Read(const Node& node, size_t count, TfLiteType type, size_t group) {
  channels.clear();
  int64_t whole = 0;
  for (size_t i = 0; i < count * group; i += group) {
    const Tensor* slice = node.Input(i);
    if (slice == nullptr) return node.Error("input %zu: expected a tensor, found none", i);
    if (!node.CheckInputType(i, {type})) return false;
    if (slice->shape.empty()) return node.InputError(i, "shape: expected at least 1 dimension, found a scalar");
    if (i == 0) shape = slice->shape;
    if (slice->shape.size() != shape.size() || !std::equal(shape.begin(), shape.end() - 1, slice->shape.begin())) {
      return node.InputError(i, "shape: expected that of the first but for the last dimension, %s, found %s",
                             ShapeText(node.Input(0)->shape).c_str(), ShapeText(slice->shape).c_str());
    }
    channels.push_back(slice->shape.back());
    whole += slice->shape.back();
  }
  if (whole > std::numeric_limits<int32_t>::max()) {
    return node.Error("output: expected a last dimension of at most 2147483647, found %lld",
                      static_cast<long long>(whole));
  }
  shape.back() = static_cast<int32_t>(whole);
  return true;
}

bool ChannelSlices::ReadWithConstants(const Node& node, size_t count) {
  if (!Read(node, count, node.outputs[0]->type)) return false;
  for (size_t i = count; i < node.inputs.size(); ++i) {
    if (node.Input(i) != nullptr && !CheckChannelValues(node, i, shape.back())) return false;
  }
  return true;
}

std::vector<int64_t> ChannelSlices::FirstWords() const {
  std::vector<int64_t> words = {0};
  for (const int32_t count : channels) words.push_back(words.back() + PackedWords(count));
  return words;
}

}  // namespace litebnn
