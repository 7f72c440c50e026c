#include "tests/support/fake_builtins.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <vector>

namespace litebnn::testing {
namespace {

int ValuesOf(const TfLiteTensor& tensor) {
  return std::accumulate(tensor.dims->data, tensor.dims->data + tensor.dims->size, 1, std::multiplies<>());
}

// True if the tensor's values, of four bytes each, may be read: a constant is complete and aligned.
bool IsReadable(const TfLiteTensor& tensor) {
  if (tensor.allocation_type != kTfLiteMmapRo) return true;
  size_t bytes = sizeof(float);
  for (int i = 0; i < tensor.dims->size; ++i) {
    const int size = tensor.dims->data[i];
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes)) return false;
  }
  return tensor.bytes >= bytes && reinterpret_cast<uintptr_t>(tensor.data) % sizeof(float) == 0;
}

// The inputs of a node, then its output. Empty if one of them is missing, of another type or not readable.
std::vector<TfLiteTensor*> TensorsOf(TfLiteContext* context, const TfLiteNode& node, TfLiteType type) {
  if (node.inputs->size == 0 || node.outputs->size != 1) return {};
  std::vector<int> indices(node.inputs->data, node.inputs->data + node.inputs->size);
  indices.push_back(node.outputs->data[0]);
  std::vector<TfLiteTensor*> tensors;
  for (int index : indices) {
    if (index < 0 || static_cast<size_t>(index) >= context->tensors_size) return {};
    tensors.push_back(&context->tensors[index]);
    if (tensors.back()->type != type || !IsReadable(*tensors.back())) return {};
  }
  if (tensors.back()->allocation_type != kTfLiteArenaRw) return {};
  return tensors;
}

// Size of a tensor's dimension, counted from the last one; 1 beyond the first.
int SizeFromBack(const TfLiteTensor& tensor, int axis) {
  return axis < tensor.dims->size ? tensor.dims->data[tensor.dims->size - 1 - axis] : 1;
}

// The runtime's own ADD, MUL and PRELU, with broadcasting. The runtime does not define RELU of a NaN; here it is the
// same as in the delegate.
TfLiteStatus PrepareArithmetic(TfLiteContext* context, TfLiteNode* node) {
  const std::vector<TfLiteTensor*> tensors = TensorsOf(context, *node, kTfLiteFloat32);
  if (tensors.size() != 3) return kTfLiteError;
  std::vector<int> shape(static_cast<size_t>(std::max(tensors[0]->dims->size, tensors[1]->dims->size)));
  for (size_t i = 0; i < shape.size(); ++i) {
    const int first = SizeFromBack(*tensors[0], static_cast<int>(i));
    const int second = SizeFromBack(*tensors[1], static_cast<int>(i));
    if (first != second && first != 1 && second != 1) return kTfLiteError;
    shape[shape.size() - 1 - i] = first == 1 ? second : first;
  }
  return context->ResizeTensor(context, tensors[2], MakeArray(shape));
}

// The value that broadcasts to `result[index]`; null if the tensor is too short.
const float* FindValue(const TfLiteTensor& tensor, const TfLiteTensor& result, size_t index) {
  size_t position = 0, stride = 1;
  for (int axis = 0; axis < result.dims->size; ++axis) {
    const int whole = SizeFromBack(result, axis), size = SizeFromBack(tensor, axis);
    if (whole < 1) return nullptr;
    if (size != 1) position += index % static_cast<size_t>(whole) * stride;
    index /= static_cast<size_t>(whole);
    stride *= static_cast<size_t>(size);
  }
  return position < tensor.bytes / sizeof(float) ? static_cast<const float*>(tensor.data) + position : nullptr;
}

float Add(float a, float b) { return a + b; }
float Multiply(float a, float b) { return a * b; }
float Leak(float a, float b) { return a < 0 ? a * b : a; }

template <float (*kCompute)(float, float), bool kHasOptions>
TfLiteStatus RunArithmetic(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor& first = context->tensors[node->inputs->data[0]];
  const TfLiteTensor& second = context->tensors[node->inputs->data[1]];
  const TfLiteTensor& result = context->tensors[node->outputs->data[0]];
  const bool relu = kHasOptions && *static_cast<const int*>(node->builtin_data) == 1;
  if (first.data == nullptr || second.data == nullptr || result.data == nullptr) return kTfLiteError;
  for (size_t i = 0; i < result.bytes / sizeof(float); ++i) {
    const float *a = FindValue(first, result, i), *b = FindValue(second, result, i);
    if (a == nullptr || b == nullptr) return kTfLiteError;
    const float value = kCompute(*a, *b);
    static_cast<float*>(result.data)[i] = relu && !(value > 0) ? 0 : value;
  }
  return kTfLiteOk;
}

// The runtime's own CONCATENATION, of words or floats along the last axis.
TfLiteStatus PrepareConcatenation(TfLiteContext* context, TfLiteNode* node) {
  std::vector<TfLiteTensor*> tensors = TensorsOf(context, *node, kTfLiteInt32);
  if (tensors.empty()) tensors = TensorsOf(context, *node, kTfLiteFloat32);
  if (tensors.empty() || tensors[0]->dims->size == 0) return kTfLiteError;
  std::vector<int> shape(tensors[0]->dims->data, tensors[0]->dims->data + tensors[0]->dims->size);
  const int axis = *static_cast<const int*>(node->builtin_data), last = static_cast<int>(shape.size()) - 1;
  if (axis != -1 && axis != last) return kTfLiteError;
  int64_t channels = 0;
  for (size_t i = 0; i + 1 < tensors.size(); ++i) {
    const TfLiteIntArray& part = *tensors[i]->dims;
    if (part.size != last + 1 || !std::equal(part.data, part.data + last, shape.begin())) return kTfLiteError;
    channels += part.data[last];
  }
  if (channels < 0 || channels > std::numeric_limits<int>::max()) return kTfLiteError;
  shape.back() = static_cast<int>(channels);
  return context->ResizeTensor(context, tensors.back(), MakeArray(shape));
}

// Must not allocate, because some tests count allocations.
TfLiteStatus RunConcatenation(TfLiteContext* context, TfLiteNode* node) {
  const auto last = [](const TfLiteTensor& tensor) { return tensor.dims->data[tensor.dims->size - 1]; };
  const TfLiteTensor& whole = context->tensors[node->outputs->data[0]];
  auto* output = static_cast<int32_t*>(whole.data);
  if (output == nullptr) return kTfLiteError;
  const int rows = last(whole) == 0 ? 0 : ValuesOf(whole) / last(whole);
  // In a damaged model another node may have resized a tensor since.
  size_t bytes = 0;
  for (int i = 0; i < node->inputs->size; ++i) {
    const TfLiteTensor& part = context->tensors[node->inputs->data[i]];
    if (part.data == nullptr || ValuesOf(part) != rows * last(part)) return kTfLiteError;
    bytes += part.bytes;
  }
  if (bytes != whole.bytes) return kTfLiteError;
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < node->inputs->size; ++i) {
      const TfLiteTensor& part = context->tensors[node->inputs->data[i]];
      const int32_t* values = static_cast<const int32_t*>(part.data) + row * last(part);
      output = std::copy(values, values + last(part), output);
    }
  }
  return kTfLiteOk;
}

// The output's size along one axis; 0 if the runtime's own kernel would refuse.
int PooledSize(int size, int filter, int stride, int padding) {
  if (filter < 1 || stride < 1 || size < 1) return 0;
  if (padding == kTfLitePaddingSame) return static_cast<int>((int64_t{size} + stride - 1) / stride);
  return padding == kTfLitePaddingValid && size >= filter ? (size - filter) / stride + 1 : 0;
}

// The runtime's own MAX_POOL_2D. The runtime does not define the maximum with a NaN; here it is the same as in the
// delegate.
TfLiteStatus PreparePool(TfLiteContext* context, TfLiteNode* node) {
  const std::vector<TfLiteTensor*> tensors = TensorsOf(context, *node, kTfLiteFloat32);
  if (tensors.size() != 2) return kTfLiteError;
  const TfLiteIntArray& shape = *tensors[0]->dims;
  if (shape.size != 4) return kTfLiteError;
  const auto& params = *static_cast<const TfLitePoolParams*>(node->builtin_data);
  const int height = PooledSize(shape.data[1], params.filter_height, params.stride_height, params.padding);
  const int width = PooledSize(shape.data[2], params.filter_width, params.stride_width, params.padding);
  if (height == 0 || width == 0 || params.activation < kTfLiteActNone || params.activation > kTfLiteActRelu) {
    return kTfLiteError;
  }
  return context->ResizeTensor(context, tensors[1], MakeArray({shape.data[0], height, width, shape.data[3]}));
}

TfLiteStatus RunPool(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor& input = context->tensors[node->inputs->data[0]];
  const TfLiteTensor& output = context->tensors[node->outputs->data[0]];
  if (input.data == nullptr || output.data == nullptr) return kTfLiteError;
  const auto& params = *static_cast<const TfLitePoolParams*>(node->builtin_data);
  const int *in = input.dims->data, *out = output.dims->data;
  if (input.dims->size != 4 || in[0] != out[0] || in[3] != out[3]) return kTfLiteError;
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
  struct Builtin {
    const char* op;
    int32_t code;
    TfLiteStatus (*prepare)(TfLiteContext*, TfLiteNode*);
    TfLiteStatus (*invoke)(TfLiteContext*, TfLiteNode*);
  };
  const Builtin builtins[] = {
      {"ADD", kTfLiteBuiltinAdd, PrepareArithmetic, RunArithmetic<Add, true>},
      {"MUL", kTfLiteBuiltinMul, PrepareArithmetic, RunArithmetic<Multiply, true>},
      {"PRELU", kTfLiteBuiltinPrelu, PrepareArithmetic, RunArithmetic<Leak, false>},
      {"CONCATENATION", kTfLiteBuiltinConcatenation, PrepareConcatenation, RunConcatenation},
      {"MAX_POOL_2D", kTfLiteBuiltinMaxPool2d, PreparePool, RunPool},
  };
  const auto* found = std::find_if(std::begin(builtins), std::end(builtins),
                                   [&op](const Builtin& builtin) { return op == builtin.op; });
  if (found == std::end(builtins)) return false;
  registration->prepare = found->prepare;
  registration->invoke = found->invoke;
  registration->builtin_code = found->code;
  return true;
}

TfLiteIntArray* MakeArray(const std::vector<int>& values) {
  auto* array = static_cast<TfLiteIntArray*>(std::malloc(sizeof(int) * (values.size() + 1)));
  array->size = static_cast<int>(values.size());
  std::copy(values.begin(), values.end(), array->data);
  return array;
}

}  // namespace litebnn::testing
