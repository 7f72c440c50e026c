// The ops LceQuantize and LceDequantize, which pack signs to bits, and unpack them.
#include <cmath>

#include "litebnn_micro.h"
#include "node.h"

namespace tflite {
namespace micro {
namespace lce {
namespace {

struct Signs {
  Options options;
  TfLiteType type;  // of the values
  int32_t rows, channels;
  int32_t zero_point;
  int8_t plus_one, minus_one;
};

const char* const kNames[] = {"input"};

bool IsSigned(TfLiteType type) { return type == kTfLiteFloat32 || type == kTfLiteInt8 || type == kTfLiteBool; }

// Checks the shapes of a tensor of values and its packed words. The last axis of the values has the channels; the last
// axis of the words has the words for these channels.
bool SetShape(const Node& node, const Tensor& values, const Tensor& words, Signs* signs) {
  if (!IsSigned(values.type)) return node.Error("type", "float32, int8 or bool", values.type);
  if (words.type != kTfLiteInt32) return node.Error("type of the words", "int32", words.type);
  signs->type = values.type;
  signs->rows = RowsOf(values);
  signs->channels = values.last();
  if (words.rank() != values.rank() || RowsOf(words) != signs->rows || words.last() != PackedWords(signs->channels)) {
    return node.Error("shape", "words for the channels of each pixel", words.last());
  }
  return true;
}

TfLiteStatus PrepareQuantize(TfLiteContext* context, TfLiteNode* node) {
  const Node checked(context, node, contract::kQuantize, kNames);
  Tensor input, output;
  if (!checked.CheckArity(1, 1) || !checked.ReadInput(0, &input) || !checked.ReadOutput(&output)) return kTfLiteError;
  Signs& signs = *static_cast<Signs*>(node->user_data);
  if (!SetShape(checked, input, output, &signs)) return kTfLiteError;
  signs.zero_point = input.zero_point;
  return kTfLiteOk;
}

TfLiteStatus Quantize(TfLiteContext* context, TfLiteNode* node) {
  const Signs& s = *static_cast<const Signs*>(node->user_data);
  const void* const input = DataOf(context, node->inputs->data[0]);
  uint32_t* const output = static_cast<uint32_t*>(DataOf(context, node->outputs->data[0]));
  if (s.type == kTfLiteFloat32) {
    litebnn_quantize_float(static_cast<const float*>(input), s.rows, s.channels, output);
  } else if (s.type == kTfLiteInt8) {
    litebnn_quantize_int8(static_cast<const int8_t*>(input), s.rows, s.channels, s.zero_point, output);
  } else {
    litebnn_quantize_bool(static_cast<const uint8_t*>(input), s.rows, s.channels, output);
  }
  return kTfLiteOk;
}

int8_t Saturated(double value) { return static_cast<int8_t>(value < -128 ? -128 : value > 127 ? 127 : value); }

TfLiteStatus PrepareDequantize(TfLiteContext* context, TfLiteNode* node) {
  const Node checked(context, node, contract::kDequantize, kNames);
  Tensor input, output;
  if (!checked.CheckArity(1, 1) || !checked.ReadInput(0, &input) || !checked.ReadOutput(&output)) return kTfLiteError;
  Signs& signs = *static_cast<Signs*>(node->user_data);
  if (!SetShape(checked, output, input, &signs)) return kTfLiteError;
  signs.plus_one = 1;
  signs.minus_one = 0;
  if (output.type == kTfLiteInt8) {
    if (!checked.CheckQuantization("output", output)) return kTfLiteError;
    const double one = std::floor(1.0 / static_cast<double>(output.scale) + 0.5);
    signs.plus_one = Saturated(output.zero_point + one);
    signs.minus_one = Saturated(output.zero_point - one);
  }
  return kTfLiteOk;
}

TfLiteStatus Dequantize(TfLiteContext* context, TfLiteNode* node) {
  const Signs& s = *static_cast<const Signs*>(node->user_data);
  const uint32_t* const input = static_cast<const uint32_t*>(DataOf(context, node->inputs->data[0]));
  void* const output = DataOf(context, node->outputs->data[0]);
  if (s.type == kTfLiteFloat32) {
    litebnn_dequantize_float(input, s.rows, s.channels, static_cast<float*>(output));
  } else {
    litebnn_dequantize_int8(input, s.rows, s.channels, s.plus_one, s.minus_one, output);
  }
  return kTfLiteOk;
}

}  // namespace

Op QuantizeOp() { return MakeOp<Signs>(contract::kQuantize, PrepareQuantize, Quantize); }

Op DequantizeOp() { return MakeOp<Signs>(contract::kDequantize, PrepareDequantize, Dequantize); }

}  // namespace lce
}  // namespace micro
}  // namespace tflite
