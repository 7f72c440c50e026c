#include "tests/support/fake_builtins.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace litebnn::testing {
namespace {

// The runtime's own ADD, without broadcasting. What RELU makes of a NaN is left open by the runtime; here it is as in
// the delegate.
TfLiteStatus PrepareAdd(TfLiteContext* context, TfLiteNode* node) {
  if (node->inputs->size != 2 || node->outputs->size != 1) return kTfLiteError;
  const TfLiteTensor* tensors[3];
  const int indices[] = {node->inputs->data[0], node->inputs->data[1], node->outputs->data[0]};
  for (int i = 0; i < 3; ++i) {
    if (indices[i] < 0 || static_cast<size_t>(indices[i]) >= context->tensors_size) return kTfLiteError;
    tensors[i] = &context->tensors[indices[i]];
    if (tensors[i]->type != kTfLiteFloat32) return kTfLiteError;
  }
  const std::vector<int> first(tensors[0]->dims->data, tensors[0]->dims->data + tensors[0]->dims->size);
  const std::vector<int> second(tensors[1]->dims->data, tensors[1]->dims->data + tensors[1]->dims->size);
  if (first != second || tensors[2]->allocation_type != kTfLiteArenaRw) return kTfLiteError;
  return context->ResizeTensor(context, &context->tensors[indices[2]], MakeArray(first));
}

TfLiteStatus RunAdd(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor& first = context->tensors[node->inputs->data[0]];
  const TfLiteTensor& second = context->tensors[node->inputs->data[1]];
  const TfLiteTensor& sum = context->tensors[node->outputs->data[0]];
  const bool relu = *static_cast<const int*>(node->builtin_data) == 1;
  if (first.data == nullptr || second.data == nullptr || sum.data == nullptr) return kTfLiteError;
  if (first.bytes < sum.bytes || second.bytes < sum.bytes) return kTfLiteError;
  for (size_t i = 0; i < sum.bytes / sizeof(float); ++i) {
    const float value = static_cast<const float*>(first.data)[i] + static_cast<const float*>(second.data)[i];
    static_cast<float*>(sum.data)[i] = relu && !(value > 0) ? 0 : value;
  }
  return kTfLiteOk;
}

// The output's size along one axis; 0 where the runtime's own kernel would refuse.
int PooledSize(int size, int filter, int stride, int padding) {
  if (filter < 1 || stride < 1 || size < 1) return 0;
  if (padding == kTfLitePaddingSame) return static_cast<int>((int64_t{size} + stride - 1) / stride);
  return padding == kTfLitePaddingValid && size >= filter ? (size - filter) / stride + 1 : 0;
}

// The runtime's own MAX_POOL_2D. What it makes of a NaN is left open by the runtime; here it is as in the delegate.
TfLiteStatus PreparePool(TfLiteContext* context, TfLiteNode* node) {
  if (node->inputs->size != 1 || node->outputs->size != 1) return kTfLiteError;
  for (int index : {node->inputs->data[0], node->outputs->data[0]}) {
    if (index < 0 || static_cast<size_t>(index) >= context->tensors_size) return kTfLiteError;
    if (context->tensors[index].type != kTfLiteFloat32) return kTfLiteError;
  }
  const TfLiteIntArray& shape = *context->tensors[node->inputs->data[0]].dims;
  TfLiteTensor* output = &context->tensors[node->outputs->data[0]];
  if (shape.size != 4 || output->allocation_type != kTfLiteArenaRw) return kTfLiteError;
  const auto& params = *static_cast<const TfLitePoolParams*>(node->builtin_data);
  const int height = PooledSize(shape.data[1], params.filter_height, params.stride_height, params.padding);
  const int width = PooledSize(shape.data[2], params.filter_width, params.stride_width, params.padding);
  if (height == 0 || width == 0 || params.activation < kTfLiteActNone || params.activation > kTfLiteActRelu) {
    return kTfLiteError;
  }
  return context->ResizeTensor(context, output, MakeArray({shape.data[0], height, width, shape.data[3]}));
}

TfLiteStatus RunPool(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor& input = context->tensors[node->inputs->data[0]];
  const TfLiteTensor& output = context->tensors[node->outputs->data[0]];
  if (input.data == nullptr || output.data == nullptr) return kTfLiteError;
  const auto& params = *static_cast<const TfLitePoolParams*>(node->builtin_data);
  const int *in = input.dims->data, *out = output.dims->data;
  const auto pad = [](int64_t size, int64_t pooled, int64_t filter, int64_t stride) {
    return std::max<int64_t>((pooled - 1) * stride + filter - size, 0) / 2;
  };
  const bool same = params.padding == kTfLitePaddingSame;
  const int64_t top = same ? pad(in[1], out[1], params.filter_height, params.stride_height) : 0;
  const int64_t left = same ? pad(in[2], out[2], params.filter_width, params.stride_width) : 0;
  const auto* values = static_cast<const float*>(input.data);
  auto* result = static_cast<float*>(output.data);
  for (int64_t i = 0; i < int64_t{out[0]} * out[1] * out[2] * out[3]; ++i) {
    const int64_t channel = i % out[3], x = i / out[3] % out[2], y = i / out[3] / out[2] % out[1];
    const int64_t image = i / out[3] / out[2] / out[1];
    float largest = params.activation == kTfLiteActRelu ? 0.0f : -std::numeric_limits<float>::infinity();
    for (int64_t row = 0; row < in[1]; ++row) {
      const int64_t tap_y = row + top - y * params.stride_height;
      if (tap_y < 0 || tap_y >= params.filter_height) continue;
      for (int64_t column = 0; column < in[2]; ++column) {
        const int64_t tap_x = column + left - x * params.stride_width;
        if (tap_x < 0 || tap_x >= params.filter_width) continue;
        const float value = values[((image * in[1] + row) * in[2] + column) * in[3] + channel];
        if (value > largest) largest = value;
      }
    }
    result[i] = largest;
  }
  return kTfLiteOk;
}

}  // namespace

bool FindFakeBuiltin(const std::string& op, TfLiteRegistration* registration) {
  const bool adds = op == "ADD";
  if (!adds && op != "MAX_POOL_2D") return false;
  registration->prepare = adds ? PrepareAdd : PreparePool;
  registration->invoke = adds ? RunAdd : RunPool;
  registration->builtin_code = adds ? kTfLiteBuiltinAdd : kTfLiteBuiltinMaxPool2d;
  return true;
}

TfLiteIntArray* MakeArray(const std::vector<int>& values) {
  auto* array = static_cast<TfLiteIntArray*>(std::malloc(sizeof(int) * (values.size() + 1)));
  array->size = static_cast<int>(values.size());
  std::copy(values.begin(), values.end(), array->data);
  return array;
}

}  // namespace litebnn::testing
