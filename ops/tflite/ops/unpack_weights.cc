// The op LitebnnUnpackWeights: weights of ±scale, or of ±scale and 0, from bits to float32.
#include "tflite/ops/contract.h"
#include "tflite/ops/op_list.h"

namespace litebnn {
namespace {

class UnpackWeightsOp final : public Op {
 public:
  explicit UnpackWeightsOp(const Isa&) {}

  bool Prepare(const Node& node) override {
    const Tensor &signs = *node.Input(0), &scales = *node.Input(1);
    const Tensor* const zeros = node.Input(2);
    const Tensor& output = *node.outputs[0];
    if (!node.CheckInputType(0, {kTfLiteInt32}) || !node.CheckInputRank(0, 2)) return false;
    if (!node.CheckInputType(1, {kTfLiteFloat32})) return false;
    if (zeros != nullptr && !node.CheckInputType(2, {kTfLiteInt32})) return false;
    if (!node.CheckOutputType({kTfLiteFloat32})) return false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != nullptr && node.inputs[i]->constant == nullptr) {
        return node.InputError(i, "expected a constant, found a tensor that is computed");
      }
    }
    if (zeros != nullptr && zeros->shape != signs.shape) {
      return node.InputError(2, "shape: expected %s as the signs have, found %s", ShapeText(signs.shape).c_str(),
                             ShapeText(zeros->shape).c_str());
    }
    rows_ = output.shape.empty() ? 0 : output.shape[0];
    values_ = output.shape.empty() ? 0 : CountValues(output.shape, 1, output.shape.size());
    words_ = signs.shape[1];
    if (rows_ != signs.shape[0] || words_ != (values_ + kBitsPerWord - 1) / kBitsPerWord) {
      return node.OutputError("shape: expected %d rows of values that pack into %d words, found %s", signs.shape[0],
                              signs.shape[1], ShapeText(output.shape).c_str());
    }
    // Depthwise convolutions have one row, whose last axis are the channels.
    const int64_t channels = rows_ == 1 ? output.shape.back() : rows_;
    signs_ = static_cast<const uint32_t*>(signs.constant);
    zeros_ = zeros == nullptr ? nullptr : static_cast<const uint32_t*>(zeros->constant);
    scale_ = static_cast<const float*>(scales.constant);
    scales_ = CountValues(scales.shape, 0, scales.shape.size());
    if (scales_ == channels || scales_ == rows_) return true;
    return node.InputError(1, "shape: expected a value for each of %d channels, found %s", static_cast<int>(channels),
                           ShapeText(scales.shape).c_str());
  }

  void Run(ThreadPool&, const void* const*, void* const* outputs, void*, size_t) const override {
    auto* output = static_cast<float*>(outputs[0]);
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t i = 0; i < values_; ++i) {
        const float scale = scale_[rows_ == 1 ? i % scales_ : row];
        *output++ = IsSet(zeros_, row, i) ? 0.0f : IsSet(signs_, row, i) ? -scale : scale;
      }
    }
  }

 private:
  bool IsSet(const uint32_t* words, int64_t row, int64_t i) const {
    return words != nullptr && (words[row * words_ + i / kBitsPerWord] >> (i % kBitsPerWord) & 1) != 0;
  }

  // Constants of the model: rows of bits, the same for zeros or null, and a scale for each channel.
  const uint32_t *signs_ = nullptr, *zeros_ = nullptr;
  const float* scale_ = nullptr;
  int64_t rows_ = 0, values_ = 0, words_ = 0, scales_ = 0;
};

}  // namespace

const OpType kUnpackWeightsOpType = {
    contract::kUnpackWeights, 2, 3, {"signs", "scales", "zeros"}, CreateOp<UnpackWeightsOp>};

}  // namespace litebnn
