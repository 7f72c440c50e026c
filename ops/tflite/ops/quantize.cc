// The op LceQuantize, which packs the signs of float32, int8 or bool values. The file also has the op that fuses it
// with a float32 batch norm.
#include <algorithm>
#include <array>
#include <vector>

#include "tflite/ops/channel_slices.h"
#include "tflite/ops/contract.h"
#include "tflite/ops/op_list.h"

namespace litebnn {
namespace {

class QuantizeOp final : public Op {
 public:
  explicit QuantizeOp(const Isa& isa) : isa_(isa) {}

  bool Prepare(const Node& node) override {
    const Tensor& input = *node.Input(0);
    if (!node.CheckInputType(0, {kTfLiteFloat32, kTfLiteInt8, kTfLiteBool})) return false;
    if (!node.CheckOutputType({kTfLiteInt32})) return false;
    if (input.shape.empty()) return node.InputError(0, "shape: expected at least 1 dimension, found a scalar");
    if (input.type == kTfLiteInt8 && !node.CheckInputZeroPoint(0)) return false;

    input_type_ = input.type;
    zero_point_ = input.quantization.zero_point;
    const size_t last = input.shape.size() - 1;
    rows_ = CountValues(input.shape, 0, last);
    channels_ = input.shape[last];
    node.outputs[0]->shape = input.shape;
    node.outputs[0]->shape[last] = PackedWords(channels_);
    return true;
  }

  size_t SliceCount() const override { return 1; }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*, size_t) const override {
    auto* output = static_cast<uint32_t*>(outputs[0]);
    switch (input_type_) {
      case kTfLiteFloat32:
        return PackFloat32Signs(isa_, pool, static_cast<const float*>(inputs[0]), rows_, channels_, output);
      case kTfLiteInt8:
        return PackInt8Signs(isa_, pool, static_cast<const int8_t*>(inputs[0]), rows_, channels_, zero_point_, output);
      default:
        return PackBoolSigns(isa_, pool, static_cast<const bool*>(inputs[0]), rows_, channels_, output);
    }
  }

 private:
  const Isa& isa_;
  TfLiteType input_type_ = kTfLiteNoType;
  int32_t zero_point_ = 0;
  int64_t rows_ = 0;
  int32_t channels_ = 0;
};

// Computes batch norms, packs the signs of their results, and concatenates the packed signs. Each slice of the result
// has three inputs: values, multiplier and addend, the latter two optional.
class AffineQuantizeOp final : public Op {
 public:
  explicit AffineQuantizeOp(const Isa& isa) : isa_(isa) {}

  bool Prepare(const Node& node) override {
    const size_t slice_count = node.inputs.size() / kInputs;
    if (!node.CheckOutputType({kTfLiteInt32}) || !slices_.Read(node, slice_count, kTfLiteFloat32, kInputs))
      return false;
    std::array<int32_t, 2> left_out = {0, 0};  // channels of the largest slice without a multiplier or addend
    for (size_t i = 0; i < slice_count; ++i) {
      const int32_t channels = slices_.channels[i];
      for (size_t constant = 0; constant < left_out.size(); ++constant) {
        const size_t position = i * kInputs + 1 + constant;
        if (node.Input(position) == nullptr) {
          left_out[constant] = std::max(left_out[constant], channels);
        } else if (!CheckChannelValues(node, position, channels)) {
          return false;
        }
      }
    }
    first_words_ = slices_.FirstWords();
    // The vectors of ones and zeros that replace missing constants are allocated only after the checks. The checks make
    // sure that these vectors are not larger than the constants of the file.
    for (size_t constant = 0; constant < left_out.size(); ++constant) {
      neutral_[constant].assign(static_cast<size_t>(left_out[constant]), constant == 0 ? 1.0f : 0.0f);
    }
    node.outputs[0]->shape = slices_.shape;
    node.outputs[0]->shape.back() = static_cast<int32_t>(first_words_.back());
    return true;
  }

  size_t OwnedBytes() const override { return (neutral_[0].size() + neutral_[1].size()) * sizeof(float); }
  size_t SliceCount() const override { return slices_.channels.size(); }
  size_t InputsPerSlice() const override { return kInputs; }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*, size_t slice) const override {
    const auto constants = [&](size_t constant) {
      const void* const values = inputs[slice * kInputs + 1 + constant];
      return values == nullptr ? neutral_[constant].data() : static_cast<const float*>(values);
    };
    PackAffineSigns(isa_, pool, static_cast<const float*>(inputs[slice * kInputs]), constants(0), constants(1),
                    slices_.rows(), slices_.channels[slice], static_cast<uint32_t*>(outputs[0]) + first_words_[slice],
                    first_words_.back());
  }

 private:
  static constexpr size_t kInputs = 3;  // per slice

  const Isa& isa_;
  ChannelSlices slices_;
  std::vector<int64_t> first_words_;           // first word of each slice in an output row, and the number of all words
  std::array<std::vector<float>, 2> neutral_;  // replaces multipliers or addends that are left out
};

}  // namespace

const OpType kQuantizeOpType = {contract::kQuantize, 1, 1, {"input"}, CreateOp<QuantizeOp>};
const OpType kAffineQuantizeOpType = {
    "LceQuantize with MUL and ADD", 3, 3 * kMaxSlices, {"input", "multiplier", "addend"}, CreateOp<AffineQuantizeOp>};

}  // namespace litebnn
