// LceQuantize: float32, int8 or bool to packed signs, and the same with a batch norm of float32 fused into it.
#include <array>
#include <vector>

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

    is_affine_ = node.inputs.size() > 1;
    if (is_affine_ && !PrepareAffine(node)) return false;
    input_type_ = input.type;
    zero_point_ = input.quantization.zero_point;
    const size_t last = input.shape.size() - 1;
    rows_ = CountValues(input.shape, 0, last);
    channels_ = input.shape[last];
    node.outputs[0]->shape = input.shape;
    node.outputs[0]->shape[last] = PackedWords(channels_);
    return true;
  }

  size_t OwnedBytes() const override { return (neutral_[0].size() + neutral_[1].size()) * sizeof(float); }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*) const override {
    auto* output = static_cast<uint32_t*>(outputs[0]);
    if (is_affine_) {
      const auto constants = [&](size_t i) {
        return inputs[i] == nullptr ? neutral_[i - 1].data() : static_cast<const float*>(inputs[i]);
      };
      return PackAffineSigns(isa_, pool, static_cast<const float*>(inputs[0]), constants(1), constants(2), rows_,
                             channels_, output);
    }
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
  bool PrepareAffine(const Node& node) {
    if (!node.CheckInputType(0, {kTfLiteFloat32})) return false;
    const int32_t channels = node.Input(0)->shape.back();
    constexpr size_t kConstants[] = {1, 2};
    // All that is there is checked first: with it the file limits how many channels there are.
    for (size_t i : kConstants) {
      if (node.Input(i) != nullptr && !CheckChannelValues(node, i, channels)) return false;
    }
    for (size_t i : kConstants) {
      if (node.Input(i) == nullptr) neutral_[i - 1].assign(static_cast<size_t>(channels), i == 1 ? 1.0f : 0.0f);
    }
    return true;
  }

  const Isa& isa_;
  bool is_affine_ = false;
  std::array<std::vector<float>, 2> neutral_;  // in the place of the multiplier or addend that is left out
  TfLiteType input_type_ = kTfLiteNoType;
  int32_t zero_point_ = 0;
  int64_t rows_ = 0;
  int32_t channels_ = 0;
};

}  // namespace

const OpType kQuantizeOpType = {contract::kQuantize, 1, 1, {"input"}, CreateOp<QuantizeOp>};
const OpType kAffineQuantizeOpType = {
    "LceQuantize with MUL and ADD", 3, 3, {"input", "multiplier", "addend"}, CreateOp<QuantizeOp>};

}  // namespace litebnn
