// The op LceBMaxPool2d: max pooling of packed signs.
#include "litebnn_micro.h"
#include "node.h"

namespace tflite {
namespace micro {
namespace lce {
namespace {

struct Pool {
  Options options;
  litebnn_bmax_pool2d pool;
  int32_t images;
};

const char* const kNames[] = {"input"};

bool ReadPool(const Node& node, const Tensor& input, const Tensor& output, Pool* state) {
  ::litebnn::BMaxPool2dOptions options;
  if (!node.ReadOptions(&options)) return false;
  litebnn_bmax_pool2d& p = state->pool;
  p.stride_height = options.stride_height;
  p.stride_width = options.stride_width;
  p.filter_height = options.filter_height;
  p.filter_width = options.filter_width;
  if (input.type != kTfLiteInt32) return node.Error("type of the input", "int32", input.type);
  if (output.type != kTfLiteInt32) return node.Error("type of the output", "int32", output.type);
  if (input.rank() != 4) return node.Error("input", "4 dimensions", input.rank());
  state->images = input.size(0);
  p.input_height = input.size(1);
  p.input_width = input.size(2);
  p.words = input.size(3);
  const Axis height = {"height", p.input_height, p.filter_height, p.stride_height, 1, 0, 0};
  const Axis width = {"width", p.input_width, p.filter_width, p.stride_width, 1, 0, 0};
  if (!Slide(node, height, options.padding, &p.output_height, &p.pad_top) ||
      !Slide(node, width, options.padding, &p.output_width, &p.pad_left)) {
    return false;
  }
  const int32_t expected[] = {state->images, p.output_height, p.output_width, p.words};
  return node.CheckOutputShape(output, expected);
}

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  const Node checked(context, node, contract::kBMaxPool2d, kNames);
  Tensor input, output;
  if (!checked.CheckArity(1, 1) || !checked.ReadInput(0, &input) || !checked.ReadOutput(&output)) return kTfLiteError;
  return ReadPool(checked, input, output, static_cast<Pool*>(node->user_data)) ? kTfLiteOk : kTfLiteError;
}

TfLiteStatus Invoke(TfLiteContext* context, TfLiteNode* node) {
  const Pool& state = *static_cast<const Pool*>(node->user_data);
  const litebnn_bmax_pool2d& p = state.pool;
  const uint32_t* input = static_cast<const uint32_t*>(DataOf(context, node->inputs->data[0]));
  uint32_t* output = static_cast<uint32_t*>(DataOf(context, node->outputs->data[0]));
  for (int32_t image = 0; image < state.images; ++image) {
    litebnn_bmax_pool2d_run(&p, input, output);
    input += p.input_height * p.input_width * p.words;
    output += p.output_height * p.output_width * p.words;
  }
  return kTfLiteOk;
}

}  // namespace

Op BMaxPool2dOp() { return MakeOp<Pool>(contract::kBMaxPool2d, Prepare, Invoke); }

}  // namespace lce
}  // namespace micro
}  // namespace tflite
