// The op runs the runtime's own CONCATENATION nodes, if their tensors are packed signs or floats. The op copies each
// input to its channels of the output. If a float CONCATENATION is fused with a max pool or a batch norm, they read its
// inputs in place. This op is then not used.
#include <algorithm>

#include "tflite/ops/channel_slices.h"
#include "tflite/ops/op_list.h"

namespace litebnn {
namespace {

// Estimated cycles to copy a word or a float.
constexpr double kCyclesPerWord = 1;

class ConcatenationOp final : public Op {
 public:
  explicit ConcatenationOp(const Isa&) {}

  bool Prepare(const Node& node) override {
    if (!node.CheckOutputType({kTfLiteInt32, kTfLiteFloat32})) return false;
    if (!slices_.Read(node, node.inputs.size(), node.outputs[0]->type)) return false;
    node.outputs[0]->shape = slices_.shape;
    return true;
  }

  size_t SliceCount() const override { return slices_.channels.size(); }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*, size_t slice) const override {
    const int64_t count = slices_.channels[slice], words = slices_.whole_channels();
    const auto* input = static_cast<const uint32_t*>(inputs[slice]);
    auto* output = static_cast<uint32_t*>(outputs[0]) + slices_.FirstChannel(slice);
    const LoopSize size = {slices_.rows(), 1, kCyclesPerWord * static_cast<double>(count)};
    ParallelFor(pool, size, [=](int, int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t word = 0; word < count; ++word) output[row * words + word] = input[row * count + word];
      }
    });
  }

 private:
  ChannelSlices slices_;
};

// True if all tensors are computed (not constant) and have the same rank and type, and the node concatenates along the
// last dimension.
bool JoinsImages(const TfLiteContext& context, const TfLiteNode& node) {
  const TfLiteIntArray &inputs = *node.inputs, &outputs = *node.outputs;
  if (inputs.size < 1 || static_cast<size_t>(inputs.size) > kMaxSlices || outputs.size != 1) return false;
  const TfLiteTensor* const whole = FindTensor(context, outputs.data[0]);
  if (whole == nullptr || (whole->type != kTfLiteInt32 && whole->type != kTfLiteFloat32)) return false;
  const auto matches_whole = [&](int index) {
    const TfLiteTensor* const tensor = FindTensor(context, index);
    return tensor != nullptr && tensor->type == whole->type && tensor->dims->size == whole->dims->size &&
           !IsConstant(*tensor);
  };
  const int rank = whole->dims->size;
  const auto& params = *static_cast<const TfLiteConcatenationParams*>(node.builtin_data);
  return rank > 0 && std::all_of(inputs.data, inputs.data + inputs.size, matches_whole) && !IsConstant(*whole) &&
         (params.axis == -1 || params.axis == rank - 1) && params.activation == kTfLiteActNone;
}

}  // namespace

const OpType kConcatenationOpType = {
    "CONCATENATION", 1, kMaxSlices, {"input"}, CreateOp<ConcatenationOp>, kTfLiteBuiltinConcatenation, JoinsImages};

}  // namespace litebnn
