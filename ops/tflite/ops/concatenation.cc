// CONCATENATION, the runtime's own op, where it puts packed signs of one pixel beside each other.
#include <algorithm>
#include <limits>
#include <vector>

#include "tflite/ops/op_list.h"

namespace litebnn {
namespace {

// What a word takes about, copied with its loop.
constexpr double kCyclesPerWord = 1;
constexpr size_t kMaxParts = 256;

class ConcatenationOp final : public Op {
 public:
  explicit ConcatenationOp(const Isa&) {}

  bool Prepare(const Node& node) override {
    if (!node.CheckOutputType({kTfLiteInt32})) return false;
    const std::vector<int32_t>& first = node.Input(0)->shape;
    part_words_.clear();
    int64_t words = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Tensor* part = node.Input(i);
      if (part == nullptr || part->type != kTfLiteInt32) return node.Error("input %zu: expected INT32", i);
      const std::vector<int32_t>& shape = part->shape;
      if (shape.empty() || shape.size() != first.size() || !std::equal(shape.begin(), shape.end() - 1, first.begin())) {
        return node.Error("input %zu: shape: expected that of the first but for the last dimension, %s, found %s", i,
                          ShapeText(first).c_str(), ShapeText(shape).c_str());
      }
      part_words_.push_back(shape.back());
      words += shape.back();
    }
    if (words > std::numeric_limits<int32_t>::max()) {
      return node.Error("output: expected at most 2147483647 words, found %lld", static_cast<long long>(words));
    }
    rows_ = CountValues(first, 0, first.size() - 1);
    words_ = words;
    node.outputs[0]->shape = first;
    node.outputs[0]->shape.back() = static_cast<int32_t>(words);
    return true;
  }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*) const override {
    auto* whole = static_cast<uint32_t*>(outputs[0]);
    ParallelFor(pool, {rows_, 1, kCyclesPerWord * static_cast<double>(words_)}, [=](int, int64_t begin, int64_t end) {
      int64_t place = 0;
      for (size_t i = 0; i < part_words_.size(); ++i) {
        const int64_t count = part_words_[i];
        const auto* part = static_cast<const uint32_t*>(inputs[i]) + begin * count;
        uint32_t* output = whole + begin * words_ + place;
        for (int64_t row = begin; row < end; ++row, part += count, output += words_) {
          for (int64_t word = 0; word < count; ++word) output[word] = part[word];
        }
        place += count;
      }
    });
  }

 private:
  int64_t rows_ = 0, words_ = 0;
  std::vector<int32_t> part_words_;
};

// Whether all tensors are computed words of one rank, which are put beside each other along their last dimension.
bool Computes(const TfLiteContext& context, const TfLiteNode& node) {
  const TfLiteIntArray &inputs = *node.inputs, &outputs = *node.outputs;
  if (inputs.size < 1 || static_cast<size_t>(inputs.size) > kMaxParts || outputs.size != 1) return false;
  const auto words_of_rank = [&](int index) {
    if (index < 0 || static_cast<size_t>(index) >= context.tensors_size) return 0;
    const TfLiteTensor& tensor = context.tensors[index];
    return tensor.type == kTfLiteInt32 && tensor.dims != nullptr && !IsConstant(tensor) ? tensor.dims->size : 0;
  };
  const int rank = words_of_rank(inputs.data[0]);
  const auto has_rank = [&](int index) { return words_of_rank(index) == rank; };
  const auto& params = *static_cast<const TfLiteConcatenationParams*>(node.builtin_data);
  return rank > 0 && std::all_of(inputs.data, inputs.data + inputs.size, has_rank) && has_rank(outputs.data[0]) &&
         (params.axis == -1 || params.axis == rank - 1) && params.activation == kTfLiteActNone;
}

}  // namespace

const OpType kConcatenationOpType = {
    "CONCATENATION", 1, kMaxParts, {"part"}, CreateOp<ConcatenationOp>, kTfLiteBuiltinConcatenation, Computes};

}  // namespace litebnn
