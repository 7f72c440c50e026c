#include "tflite/ops/int8_sum.h"

#include <algorithm>

#include "tflite/ops/op_list.h"

namespace litebnn {
namespace {

// Reads the parameters of the sum of two images with the quantizations `first` and `second`. Returns false if this op
// does not support the sum.
bool ReadSpec(const Int8Grid& first, const Int8Grid& second, const Int8Grid& sum, const void* options,
              Int8SumSpec* spec) {
  *spec = {first, second, sum, 0, 0};
  const int activation = static_cast<const TfLiteAddParams*>(options)->activation;
  return FindActivationLevels(activation, sum, &spec->output_min, &spec->output_max);
}

}  // namespace

bool FusedInt8Sum::Resize(const Node& node, const Int8Grid& first, size_t position) {
  const Tensor& addend = *node.Input(position);
  if (!node.CheckInputType(position, {kTfLiteInt8})) return false;
  if (!is_set_) {
    Int8SumSpec spec;
    if (!ReadSpec(first, GridOf(addend), GridOf(*node.outputs[0]), node.builtin_data, &spec) || !sum_.Set(spec)) {
      return node.Error("expected the grids and options that were claimed, found others");
    }
    has_floats_ = sum_.FindFloatSum(&floats_);
    is_set_ = true;
  }
  const std::vector<int32_t> image = node.outputs[0]->shape;
  is_alike_ = addend.shape == image;
  if (broadcast_.Resize(image, addend.shape, &node.outputs[0]->shape)) return true;
  return node.InputError(position, "shape: expected one that goes with %s, found %s", ShapeText(image).c_str(),
                         ShapeText(addend.shape).c_str());
}

Bconv2dEpilogue FusedInt8Sum::EpilogueOf(const void* addend) const {
  Bconv2dEpilogue epilogue;
  epilogue.int8_addend = static_cast<const int8_t*>(addend);
  epilogue.int8_sum = floats_;
  return epilogue;
}

void FusedInt8Sum::Run(ThreadPool& pool, const int8_t* image, const void* addend, int8_t* output) const {
  broadcast_.Run(pool, image, static_cast<const int8_t*>(addend), output, sum_);
}

namespace {

class Int8AddOp final : public Op {
 public:
  explicit Int8AddOp(const Isa&) {}

  bool Prepare(const Node& node) override {
    if (!node.CheckInputType(0, {kTfLiteInt8}) || !node.CheckOutputType({kTfLiteInt8})) return false;
    node.outputs[0]->shape = node.Input(0)->shape;
    return sum_.Resize(node, GridOf(*node.Input(0)), 1);
  }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*, size_t) const override {
    sum_.Run(pool, static_cast<const int8_t*>(inputs[0]), inputs[1], static_cast<int8_t*>(outputs[0]));
  }

 private:
  FusedInt8Sum sum_;
};

// True if the tensors are int8 images with equal channels. The function must not check batch and spatial sizes. When
// inputs are resized, a runtime removes its delegates and asks them again which nodes they claim. At that time some
// tensors have old shapes, and the runtime fails if the answer differs.
bool SumsImages(const TfLiteContext& context, const TfLiteNode& node) {
  const TfLiteIntArray &inputs = *node.inputs, &outputs = *node.outputs;
  if (inputs.size != 2 || outputs.size != 1) return false;
  const int first = inputs.data[0], second = inputs.data[1], sum = outputs.data[0];
  if (!IsComputedInt8Image(context, first) || !IsComputedInt8Image(context, second) ||
      !IsComputedInt8Image(context, sum)) {
    return false;
  }
  const auto channels = [&](int tensor) { return context.tensors[tensor].dims->data[3]; };
  const auto grid = [&](int tensor) { return GridOf(context.tensors[tensor]); };
  Int8SumSpec spec;
  Int8Sum computed;
  return channels(first) == channels(second) &&
         ReadSpec(grid(first), grid(second), grid(sum), node.builtin_data, &spec) && computed.Set(spec);
}

bool FollowsConvolution(const OpType& writer) { return &writer == &kBconv2dOpType; }

}  // namespace

const OpType kInt8AddOpType = {
    .name = "ADD",
    .min_inputs = 2,
    .max_inputs = 2,
    .input_names = {"input 1", "input 2"},
    .create = CreateOp<Int8AddOp>,
    .builtin_code = kTfLiteBuiltinAdd,
    .computes = SumsImages,
    .follows = FollowsConvolution,
    .is_sole_reader = true,
};

}  // namespace litebnn
