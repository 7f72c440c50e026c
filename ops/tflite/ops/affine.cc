// MUL and ADD with a constant for each channel, the runtime's own ops, where nothing but signs is made of the result: a
// batch norm. Most of them are fused into the packing of the signs; by itself one runs where the runtime reads its
// output too, or where they stand in another order.
#include <algorithm>

#include "tflite/ops/op_list.h"

namespace litebnn {
namespace {

// What a value takes about, read from the L2 cache and written.
constexpr double kCyclesPerValue = 0.3;

template <bool kMultiplies>
class AffineOp final : public Op {
 public:
  explicit AffineOp(const Isa&) {}

  bool Prepare(const Node& node) override {
    const Tensor& input = *node.Input(0);
    if (!node.CheckInputType(0, {kTfLiteFloat32}) || !node.CheckInputType(1, {kTfLiteFloat32})) return false;
    if (!node.CheckOutputType({kTfLiteFloat32})) return false;
    const std::vector<int32_t>& constants = node.Input(1)->shape;
    channels_ = input.shape.empty() ? 0 : input.shape.back();
    if (CountValues(constants, 0, constants.size()) != channels_) {
      return node.InputError(0, "last dimension: expected one that goes with %s, found %d",
                             ShapeText(constants).c_str(), channels_);
    }
    rows_ = CountValues(input.shape, 0, input.shape.size() - 1);
    node.outputs[0]->shape = input.shape;
    return true;
  }

  std::optional<size_t> OverwritableInput() const override { return 0; }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*) const override {
    const auto *input = static_cast<const float*>(inputs[0]), *constants = static_cast<const float*>(inputs[1]);
    auto* output = static_cast<float*>(outputs[0]);
    const int32_t channels = channels_;
    const auto rows = [=](int, int64_t begin, int64_t end) {
      for (int64_t i = begin * channels; i < end * channels; i += channels) {
        for (int32_t c = 0; c < channels; ++c) {
          output[i + c] = kMultiplies ? input[i + c] * constants[c] : input[i + c] + constants[c];
        }
      }
    };
    ParallelFor(pool, {rows_, 1, kCyclesPerValue * channels}, rows);
  }

 private:
  int64_t rows_ = 0;
  int32_t channels_ = 0;
};

bool IsFloat32(const TfLiteContext& context, int index) {
  if (index < 0 || static_cast<size_t>(index) >= context.tensors_size) return false;
  const TfLiteTensor& tensor = context.tensors[index];
  return tensor.type == kTfLiteFloat32 && tensor.dims != nullptr;
}

// Whether the second input is a constant that has a value for each of the first one's channels.
bool Computes(const TfLiteContext& context, const TfLiteNode& node) {
  const TfLiteIntArray &inputs = *node.inputs, &outputs = *node.outputs;
  if (inputs.size != 2 || outputs.size != 1) return false;
  if (!IsFloat32(context, inputs.data[0]) || !IsFloat32(context, inputs.data[1])) return false;
  if (!IsFloat32(context, outputs.data[0])) return false;
  const TfLiteTensor &input = context.tensors[inputs.data[0]], &constants = context.tensors[inputs.data[1]];
  const TfLiteIntArray &shape = *input.dims, &vector = *constants.dims;
  // MUL's options begin with the activation too.
  return static_cast<const TfLiteAddParams*>(node.builtin_data)->activation == kTfLiteActNone && !IsConstant(input) &&
         IsConstant(constants) && !IsConstant(context.tensors[outputs.data[0]]) && vector.size > 0 &&
         vector.size <= shape.size && vector.data[vector.size - 1] == shape.data[shape.size - 1] &&
         std::all_of(vector.data, vector.data + vector.size - 1, [](int size) { return size == 1; });
}

}  // namespace

const OpType kScaleOpType = {
    "MUL", 2, 2, {"input", "multiplier"}, CreateOp<AffineOp<true>>, kTfLiteBuiltinMul, Computes, nullptr, true};
const OpType kShiftOpType = {"ADD",    2,       2,   {"input", "addend"}, CreateOp<AffineOp<false>>, kTfLiteBuiltinAdd,
                             Computes, nullptr, true};

}  // namespace litebnn
