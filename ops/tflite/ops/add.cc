// ADD, the runtime's own op, where it adds to a binary convolution's output. Most of them are fused into the
// convolution; by itself it runs where that output has another reader, or another node stands between the two.
#include <algorithm>

#include "tflite/ops/broadcast_sum.h"
#include "tflite/ops/op_list.h"

namespace litebnn {
namespace {

class AddOp final : public Op {
 public:
  explicit AddOp(const Isa&) {}

  bool Prepare(const Node& node) override {
    if (!node.CheckInputType(0, {kTfLiteFloat32}) || !node.CheckInputType(1, {kTfLiteFloat32})) return false;
    if (!node.CheckOutputType({kTfLiteFloat32})) return false;
    rectify_ = static_cast<const TfLiteAddParams*>(node.builtin_data)->activation == kTfLiteActRelu;
    const std::vector<int32_t>&first = node.Input(0)->shape, &second = node.Input(1)->shape;
    if (sum_.Resize(first, second, &node.outputs[0]->shape)) return true;
    return node.InputError(1, "shape: expected one that goes with %s, found %s", ShapeText(first).c_str(),
                           ShapeText(second).c_str());
  }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*) const override {
    sum_.Run(pool, static_cast<const float*>(inputs[0]), static_cast<const float*>(inputs[1]), rectify_,
             static_cast<float*>(outputs[0]));
  }

 private:
  bool rectify_ = false;
  BroadcastSum sum_;
};

// Whether the tensors are images of one shape and the activation is none or RELU.
bool Computes(const TfLiteContext& context, const TfLiteNode& node) {
  if (!AreComputedImages(context, node, 2)) return false;
  const int activation = static_cast<const TfLiteAddParams*>(node.builtin_data)->activation;
  const TfLiteIntArray& first = *context.tensors[node.inputs->data[0]].dims;
  const TfLiteIntArray& second = *context.tensors[node.inputs->data[1]].dims;
  return (activation == kTfLiteActNone || activation == kTfLiteActRelu) &&
         std::equal(first.data, first.data + first.size, second.data);
}

bool IsBconv2d(const OpType& writer) { return &writer == &kBconv2dOpType; }

}  // namespace

const OpType kAddOpType = {"ADD",    2,        2, {"input 1", "input 2"}, CreateOp<AddOp>, kTfLiteBuiltinAdd,
                           Computes, IsBconv2d};

}  // namespace litebnn
