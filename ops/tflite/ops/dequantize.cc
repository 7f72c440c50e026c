// The op LceDequantize: packed signs to float32, int8 or bool.
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
    rows_ = CountValues(input.shape, 0, last);
    channels_ = channels;
    output.shape = input.shape;
    output.shape[last] = channels;
    return true;
  }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*, size_t) const override {
    const auto* input = static_cast<const uint32_t*>(inputs[0]);
    switch (output_type_) {
      case kTfLiteFloat32:
        return UnpackSigns(pool, input, rows_, channels_, 1.0f, -1.0f, static_cast<float*>(outputs[0]));
      case kTfLiteInt8:
        return UnpackSigns(pool, input, rows_, channels_, plus_one_, minus_one_, static_cast<int8_t*>(outputs[0]));
      default:
        return UnpackSigns(pool, input, rows_, channels_, true, false, static_cast<bool*>(outputs[0]));
    }
  }

 private:
  TfLiteType output_type_ = kTfLiteNoType;
  int8_t plus_one_ = 1;
  int8_t minus_one_ = -1;
  int64_t rows_ = 0;
  int32_t channels_ = 0;
};

}  // namespace

const OpType kDequantizeOpType = {contract::kDequantize, 1, 1, {"input"}, CreateOp<DequantizeOp>};

}  // namespace litebnn
