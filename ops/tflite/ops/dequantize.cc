// The ops LceDequantize, from packed signs to float32, int8 or bool, and LitebnnUnpackWeights, from bits to the float32
// weights ±scale, or ±scale and 0.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tflite/ops/contract.h"
#include "tflite/ops/op_list.h"

namespace litebnn {
namespace {

int8_t SaturateToInt8(double value) { return static_cast<int8_t>(std::clamp(value, -128.0, 127.0)); }

class DequantizeOp final : public Op {
 public:
  explicit DequantizeOp(const Isa&) {}

  bool Prepare(const Node& node) override {
    const Tensor& input = *node.Input(0);
    Tensor& output = *node.outputs[0];
    if (!node.CheckInputType(0, {kTfLiteInt32})) return false;
    if (!node.CheckOutputType({kTfLiteFloat32, kTfLiteInt8, kTfLiteBool})) return false;
    if (input.shape.empty()) return node.InputError(0, "shape: expected at least 1 dimension, found a scalar");
    if (output.shape.size() != input.shape.size()) {
      return node.OutputError("shape: expected %zu dimensions as the input has, found %s", input.shape.size(),
                              ShapeText(output.shape).c_str());
    }
    // The number of channels cannot be derived from the number of words, so it comes from the output shape in the
    // model.
    const size_t last = input.shape.size() - 1;
    const int32_t channels = output.shape[last];
    if (channels < 1 || PackedWords(channels) != input.shape[last]) {
      return node.OutputError("last dimension: expected a number of channels that packs into %d words, found %d",
                              input.shape[last], channels);
    }
    if (output.type == kTfLiteInt8) {
      if (!node.CheckOutputQuantization()) return false;
      const double one = std::round(1.0 / static_cast<double>(output.quantization.scale));
      plus_one_ = SaturateToInt8(output.quantization.zero_point + one);
      minus_one_ = SaturateToInt8(output.quantization.zero_point - one);
    }

    output_type_ = output.type;
    if (output.type == kTfLiteBool) minus_one_ = 0;
    rows_ = CountValues(input.shape, 0, last);
    channels_ = channels;
    output.shape = input.shape;
    output.shape[last] = channels;
    return true;
  }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*, size_t) const override {
    const auto* input = static_cast<const uint32_t*>(inputs[0]);
    if (output_type_ == kTfLiteFloat32) {
      UnpackSigns(pool, input, rows_, channels_, 1.0f, -1.0f, static_cast<float*>(outputs[0]));
    } else {
      UnpackSigns(pool, input, rows_, channels_, plus_one_, minus_one_, static_cast<int8_t*>(outputs[0]));
    }
  }

 private:
  TfLiteType output_type_ = kTfLiteNoType;
  int8_t plus_one_ = 1;
  int8_t minus_one_ = -1;
  int64_t rows_ = 0;
  int32_t channels_ = 0;
};

class UnpackWeightsOp final : public Op {
 public:
  explicit UnpackWeightsOp(const Isa&) {}

  bool Prepare(const Node& node) override {
    const Tensor& output = *node.outputs[0];
    if (node.Input(1) == nullptr) return node.Error("scales: expected a tensor, found none");
    if (!node.CheckInputRank(0, 2) || !node.CheckOutputType({kTfLiteFloat32})) return false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.Input(i) == nullptr) continue;
      if (!node.CheckInputType(i, {i == 1 ? kTfLiteFloat32 : kTfLiteInt32})) return false;
      if (node.Input(i)->constant == nullptr) return node.InputError(i, "expected a constant, found a computed tensor");
    }
    const Tensor &signs = *node.Input(0), &scales = *node.Input(1);
    const Tensor* const zeros = node.Input(2);
    if (zeros != nullptr && zeros->shape != signs.shape) return node.InputError(2, "shape: expected that of the signs");
    rows_ = signs.shape[0];
    words_ = signs.shape[1];
    bytes_ = TensorBytes(output);
    values_ = static_cast<int64_t>(bytes_ / sizeof(float)) / rows_;
    if (bytes_ == 0 || output.shape.empty() || output.shape[0] != rows_ ||
        words_ != (values_ + kBitsPerWord - 1) / kBitsPerWord) {
      return node.OutputError("shape: expected %d rows that pack into %d words", signs.shape[0], signs.shape[1]);
    }
    signs_ = static_cast<const uint32_t*>(signs.constant);
    zeros_ = zeros == nullptr ? nullptr : static_cast<const uint32_t*>(zeros->constant);
    scale_ = static_cast<const float*>(scales.constant);
    scales_ = CountValues(scales.shape, 0, scales.shape.size());
    // A depthwise convolution has one row, and its last axis are the channels.
    return (rows_ == 1 && scales_ == output.shape.back()) || CheckChannelValues(node, 1, output.shape[0]);
  }

  // The weights, which the partition holds: any number of nodes may unpack the same bits.
  size_t OwnedBytes() const override { return bytes_; }

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
  size_t bytes_ = 0;
};

}  // namespace

const OpType kDequantizeOpType = {contract::kDequantize, 1, 1, {"input"}, CreateOp<DequantizeOp>};

const OpType kUnpackWeightsOpType = {
    contract::kUnpackWeights, 2, 3, {"signs", "scales", "zeros"}, CreateOp<UnpackWeightsOp>};

}  // namespace litebnn
