// The file computes three of the runtime's own ops in one pass over an image: MUL by a gate, PRELU, and ADD of another
// image. The gate is not a constant, and has as many channels as the image. Squeeze-and-excite blocks have these ops in
// sequence.
//
// Most nodes that multiply by a gate, and the PRELU and ADD after them, are fused into binary convolutions. The ops of
// this file run the remaining nodes: no convolution produces the image, or the convolution's output has a second
// consumer.
#include <algorithm>
#include <vector>

#include "tflite/ops/gated_sum.h"
#include "tflite/ops/op_list.h"

namespace litebnn {
namespace {

class GateOp final : public Op {
 public:
  GateOp(const Isa& isa, const GatedSum::Roles& roles) : isa_(isa), sum_(roles) {}

  bool Prepare(const Node& node) override {
    if (!node.CheckInputType(0, {kTfLiteFloat32}) || !node.CheckOutputType({kTfLiteFloat32})) return false;
    const std::vector<int32_t>& shape = node.Input(0)->shape;
    if (shape.size() > 4) {
      return node.InputError(0, "shape: expected at most 4 dimensions, found %s", ShapeText(shape).c_str());
    }
    node.outputs[0]->shape = shape;
    return sum_.Resize(node);
  }

  size_t WorkspaceBytes(int) const override { return sum_.WorkspaceBytes(); }
  std::optional<size_t> OverwritableInput() const override { return 0; }
  size_t OwnedBytes() const override { return sum_.OwnedBytes(); }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void* workspace, size_t) const override {
    sum_.Run(isa_, pool, static_cast<const float*>(inputs[0]), inputs, static_cast<float*>(outputs[0]), workspace);
  }

 private:
  const Isa& isa_;
  GatedSum sum_;
};

// The template arguments kGate, kAlpha and kAddend are the positions of the operands among the node's inputs, or
// kNoInput.
template <size_t kGate, size_t kAlpha, size_t kAddend, bool kRectifiesProduct>
std::unique_ptr<Op> CreateGate(const Isa& isa) {
  return std::unique_ptr<Op>(new (std::nothrow) GateOp(isa, {kGate, kAlpha, kAddend, kRectifiesProduct}));
}

// True if the output has four dimensions, and both inputs have as many channels as the output. The functions for
// claiming nodes must not check batch and spatial sizes. When inputs are resized, a runtime asks its delegates again
// which nodes they claim. At that time some tensors still have old shapes, and the runtime fails if the answer differs.
template <int kActivation>
bool IsGate(const TfLiteContext& context, const TfLiteNode& node) {
  if (static_cast<const TfLiteAddParams*>(node.builtin_data)->activation != kActivation) return false;
  const TfLiteIntArray &inputs = *node.inputs, &outputs = *node.outputs;
  if (inputs.size != 2 || outputs.size != 1 || !IsComputedFloat(context, outputs.data[0])) return false;
  const TfLiteIntArray& output = *context.tensors[outputs.data[0]].dims;
  return output.size == 4 && output.data[3] <= kMaxOnes &&
         std::all_of(inputs.data, inputs.data + inputs.size, [&](int input) {
           if (!IsComputedFloat(context, input)) return false;
           const TfLiteIntArray& dims = *context.tensors[input].dims;
           return dims.size > 0 && dims.size <= output.size && dims.data[dims.size - 1] == output.data[3];
         });
}

bool IsPRelu(const TfLiteContext& context, const TfLiteNode& node) {
  return HasChannelValues(context, node) && context.tensors[node.inputs->data[0]].dims->size == 4;
}

// True if the tensors are images with equal channels, and the activation is none or RELU.
bool IsSum(const TfLiteContext& context, const TfLiteNode& node) {
  if (!AreComputedImages(context, node, 2)) return false;
  const int activation = static_cast<const TfLiteAddParams*>(node.builtin_data)->activation;
  const auto channels = [&](int input) { return context.tensors[node.inputs->data[input]].dims->data[3]; };
  return (activation == kTfLiteActNone || activation == kTfLiteActRelu) && channels(0) == channels(1) &&
         channels(0) <= kMaxOnes;
}

// True if an ADD can be fused with the op `writer`, which writes one of its addends. The delegate then claims the ADD.
bool IsFusedWithAdd(const OpType& writer) {
  return &writer == &kBconv2dOpType || &writer == &kGateOpType || &writer == &kRectifiedGateOpType ||
         &writer == &kPReluOpType;
}

}  // namespace

const OpType kAddOpType = {
    "ADD",         2, 2, {"input 1", "input 2"}, CreateGate<kNoInput, kNoInput, 1, false>, kTfLiteBuiltinAdd, IsSum,
    IsFusedWithAdd};
const OpType kGateOpType = {
    .name = "MUL",
    .min_inputs = 2,
    .max_inputs = 2,
    .input_names = {"input 1", "input 2"},
    .create = CreateGate<1, kNoInput, kNoInput, false>,
    .builtin_code = kTfLiteBuiltinMul,
    .computes = IsGate<kTfLiteActNone>,
    .needs_reader = true,
};
const OpType kRectifiedGateOpType = {
    .name = "MUL",
    .min_inputs = 2,
    .max_inputs = 2,
    .input_names = {"input 1", "input 2"},
    .create = CreateGate<1, kNoInput, kNoInput, true>,
    .builtin_code = kTfLiteBuiltinMul,
    .computes = IsGate<kTfLiteActRelu>,
    .needs_reader = true,
};
const OpType kPReluOpType = {
    .name = "PRELU",
    .min_inputs = 2,
    .max_inputs = 2,
    .input_names = {"input", "alpha"},
    .create = CreateGate<kNoInput, 1, kNoInput, false>,
    .builtin_code = kTfLiteBuiltinPrelu,
    .computes = IsPRelu,
    .sign_feed = SignFeed::kPasses,
    .needs_reader = true,
    .has_options = false,
};
const OpType kGatedSumOpType = {
    "MUL with PRELU and ADD", 4, 4, {"input 1", "input 2", "alpha", "addend"}, CreateGate<1, 2, 3, false>};
const OpType kRectifiedGatedSumOpType = {
    "MUL with RELU and ADD", 4, 4, {"input 1", "input 2", "alpha", "addend"}, CreateGate<1, 2, 3, true>};

}  // namespace litebnn
