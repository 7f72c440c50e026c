#include "tests/support/fake_builtins.h"

#include <algorithm>
#include <cmath>
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

size_t ValueBytes(const TfLiteTensor& tensor) { return tensor.type == kTfLiteInt8 ? sizeof(int8_t) : sizeof(float); }

// True if the tensor's values may be read. The data of a constant tensor must be complete and aligned.
bool IsReadable(const TfLiteTensor& tensor) {
  if (tensor.allocation_type != kTfLiteMmapRo) return true;
  size_t bytes = ValueBytes(tensor);
  for (int i = 0; i < tensor.dims->size; ++i) {
    const int size = tensor.dims->data[i];
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes)) return false;
  }
  return tensor.bytes >= bytes && reinterpret_cast<uintptr_t>(tensor.data) % ValueBytes(tensor) == 0;
}

// Returns the input tensors of a node and then its output tensor. If one of them is missing, has another type or is not
// readable, returns nothing.
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

// The size of the dimension `axis`, which is counted from the last dimension; 1 if the tensor has fewer dimensions.
int SizeFromBack(const TfLiteTensor& tensor, int axis) {
  return axis < tensor.dims->size ? tensor.dims->data[tensor.dims->size - 1 - axis] : 1;
}

// A substitute for the runtime's own ADD, MUL and PRELU, with broadcasting. The runtime does not define RELU of a NaN;
// the substitute computes it as the delegate does.
TfLiteStatus PrepareArithmetic(TfLiteContext* context, TfLiteNode* node, TfLiteType type) {
  const std::vector<TfLiteTensor*> tensors = TensorsOf(context, *node, type);
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

TfLiteStatus PrepareFloats(TfLiteContext* context, TfLiteNode* node) {
  return PrepareArithmetic(context, node, kTfLiteFloat32);
}

// The value that is broadcast to `result[index]`; null if the tensor has too few values.
template <typename T>
const T* FindValue(const TfLiteTensor& tensor, const TfLiteTensor& result, size_t index) {
  size_t position = 0, stride = 1;
  for (int axis = 0; axis < result.dims->size; ++axis) {
    const int whole = SizeFromBack(result, axis), size = SizeFromBack(tensor, axis);
    if (whole < 1) return nullptr;
    if (size != 1) position += index % static_cast<size_t>(whole) * stride;
    index /= static_cast<size_t>(whole);
    stride *= static_cast<size_t>(size);
  }
  return position < tensor.bytes / sizeof(T) ? static_cast<const T*>(tensor.data) + position : nullptr;
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
    const auto *a = FindValue<float>(first, result, i), *b = FindValue<float>(second, result, i);
    if (a == nullptr || b == nullptr) return kTfLiteError;
    const float value = kCompute(*a, *b);
    static_cast<float*>(result.data)[i] = relu && !(value > 0) ? 0 : value;
  }
  return kTfLiteOk;
}

bool IsGrid(const TfLiteTensor& tensor) {
  const TfLiteQuantizationParams& grid = tensor.params;
  return std::isfinite(grid.scale) && grid.scale > 0 && grid.zero_point >= -128 && grid.zero_point <= 127;
}

// A scale below 1 in fixed point, as the reference kernels represent it.
struct Multiplier {
  int64_t multiplier;
  int shift;
};

// Converts a scale to fixed point. Returns false if the scale is not between 0 and 1.
bool Decompose(double scale, Multiplier* result) {
  if (!std::isfinite(scale) || scale <= 0) return false;
  int exponent;
  const double rounded = std::round(std::frexp(scale, &exponent) * 2147483648.0);
  const bool is_one = rounded == 2147483648.0;
  *result = {static_cast<int64_t>(is_one ? rounded / 2 : rounded), -(exponent + (is_one ? 1 : 0))};
  if (result->shift > 31) *result = {0, 0};
  return result->shift >= 0;
}

// Multiplies a value by a scale. The product with the 31-bit multiplier is divided by 2^31 and rounded, halves upwards.
// The result is shifted right and rounded again, halves away from zero.
int64_t Scale(int64_t value, const Multiplier& scale) {
  const int64_t limited = std::clamp<int64_t>(value, std::numeric_limits<int>::min(), std::numeric_limits<int>::max());
  const int64_t high = (limited * scale.multiplier + (int64_t{1} << 30)) >> 31;
  const int64_t divisor = int64_t{1} << scale.shift, magnitude = (std::abs(high) + divisor / 2) >> scale.shift;
  return high < 0 ? -magnitude : magnitude;
}

// Adds the zero point to a value, and clamps the result to the int8 values that the activation allows.
int8_t ToLevel(int64_t value, int activation, const TfLiteQuantizationParams& grid) {
  const auto level = [&grid](float bound) {
    return std::clamp(static_cast<double>(std::round(bound / grid.scale)) + grid.zero_point, -128.0, 127.0);
  };
  const bool is_n1_to_1 = activation == kTfLiteActReluN1To1;
  const double low = activation == kTfLiteActNone ? -128 : level(is_n1_to_1 ? -1.0f : 0.0f);
  const double high = activation == kTfLiteActRelu6 ? level(6.0f) : is_n1_to_1 ? level(1.0f) : 127;
  return static_cast<int8_t>(std::clamp(static_cast<double>(value + grid.zero_point), low, high));
}

bool IsActivation(int activation) { return activation >= kTfLiteActNone && activation <= kTfLiteActRelu6; }

// The fixed-point factors of an int8 ADD. The factor of each operand is the operand's scale divided by u, which is
// twice the larger of both scales. The factor of the sum is u / (2^20 * the output's scale), because operands are
// shifted left by 20 bits.
struct SumScales {
  Multiplier first, second, sum;
};

bool FindSumScales(const TfLiteTensor& first, const TfLiteTensor& second, const TfLiteTensor& sum, SumScales* scales) {
  const double a = static_cast<double>(first.params.scale), b = static_cast<double>(second.params.scale);
  const double unit = 2 * std::max(a, b);
  return Decompose(a / unit, &scales->first) && Decompose(b / unit, &scales->second) &&
         Decompose(unit / (1048576.0 * static_cast<double>(sum.params.scale)), &scales->sum);
}

// A substitute for the runtime's own ADD of floats or of int8.
TfLiteStatus PrepareAdd(TfLiteContext* context, TfLiteNode* node) {
  const std::vector<TfLiteTensor*> tensors = TensorsOf(context, *node, kTfLiteInt8);
  SumScales scales;
  if (tensors.size() != 3) return PrepareFloats(context, node);
  if (!std::all_of(tensors.begin(), tensors.end(), [](const TfLiteTensor* tensor) { return IsGrid(*tensor); }) ||
      !FindSumScales(*tensors[0], *tensors[1], *tensors[2], &scales) ||
      !IsActivation(*static_cast<const int*>(node->builtin_data))) {
    return kTfLiteError;
  }
  return PrepareArithmetic(context, node, kTfLiteInt8);
}

TfLiteStatus RunAdd(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor& first = context->tensors[node->inputs->data[0]];
  const TfLiteTensor& second = context->tensors[node->inputs->data[1]];
  const TfLiteTensor& result = context->tensors[node->outputs->data[0]];
  if (result.type != kTfLiteInt8) return RunArithmetic<Add, true>(context, node);
  SumScales scales;
  if (first.data == nullptr || second.data == nullptr || result.data == nullptr) return kTfLiteError;
  if (!FindSumScales(first, second, result, &scales)) return kTfLiteError;
  for (size_t i = 0; i < result.bytes; ++i) {
    const auto *a = FindValue<int8_t>(first, result, i), *b = FindValue<int8_t>(second, result, i);
    if (a == nullptr || b == nullptr) return kTfLiteError;
    const int64_t sum = Scale(int64_t{*a - first.params.zero_point} * 1048576, scales.first) +
                        Scale(int64_t{*b - second.params.zero_point} * 1048576, scales.second);
    static_cast<int8_t*>(result.data)[i] =
        ToLevel(Scale(sum, scales.sum), *static_cast<const int*>(node->builtin_data), result.params);
  }
  return kTfLiteOk;
}

// Finds the factor by which an int8 MUL scales the product of two values, from which the zero points were subtracted.
// The factor is computed in floats, as in the reference kernel.
bool FindProductScale(const TfLiteTensor& first, const TfLiteTensor& second, const TfLiteTensor& product,
                      Multiplier* scale) {
  return Decompose(static_cast<double>(first.params.scale * second.params.scale / product.params.scale), scale);
}

// A substitute for the runtime's own MUL of floats or of int8.
TfLiteStatus PrepareMultiply(TfLiteContext* context, TfLiteNode* node) {
  const std::vector<TfLiteTensor*> tensors = TensorsOf(context, *node, kTfLiteInt8);
  Multiplier scale;
  if (tensors.size() != 3) return PrepareFloats(context, node);
  if (!std::all_of(tensors.begin(), tensors.end(), [](const TfLiteTensor* tensor) { return IsGrid(*tensor); }) ||
      !FindProductScale(*tensors[0], *tensors[1], *tensors[2], &scale) ||
      !IsActivation(*static_cast<const int*>(node->builtin_data))) {
    return kTfLiteError;
  }
  return PrepareArithmetic(context, node, kTfLiteInt8);
}

TfLiteStatus RunMultiply(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor& first = context->tensors[node->inputs->data[0]];
  const TfLiteTensor& second = context->tensors[node->inputs->data[1]];
  const TfLiteTensor& result = context->tensors[node->outputs->data[0]];
  if (result.type != kTfLiteInt8) return RunArithmetic<Multiply, true>(context, node);
  Multiplier scale;
  if (first.data == nullptr || second.data == nullptr || result.data == nullptr) return kTfLiteError;
  if (!FindProductScale(first, second, result, &scale)) return kTfLiteError;
  for (size_t i = 0; i < result.bytes; ++i) {
    const auto *a = FindValue<int8_t>(first, result, i), *b = FindValue<int8_t>(second, result, i);
    if (a == nullptr || b == nullptr) return kTfLiteError;
    const int64_t product = int64_t{*a - first.params.zero_point} * (*b - second.params.zero_point);
    static_cast<int8_t*>(result.data)[i] =
        ToLevel(Scale(product, scale), *static_cast<const int*>(node->builtin_data), result.params);
  }
  return kTfLiteOk;
}

// A substitute for the runtime's own CONCATENATION along the last axis. The values are packed words or floats.
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

// Runs a CONCATENATION. It allocates nothing, because some tests count allocations.
TfLiteStatus RunConcatenation(TfLiteContext* context, TfLiteNode* node) {
  const auto last = [](const TfLiteTensor& tensor) { return tensor.dims->data[tensor.dims->size - 1]; };
  const TfLiteTensor& whole = context->tensors[node->outputs->data[0]];
  auto* output = static_cast<int32_t*>(whole.data);
  if (output == nullptr) return kTfLiteError;
  const int rows = last(whole) == 0 ? 0 : ValuesOf(whole) / last(whole);
  // In a damaged model, another node may have resized a tensor after this node was prepared.
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

// The size of a pool's output along one axis; 0 if the runtime's own kernel would refuse the pool.
int PooledSize(int size, int filter, int stride, int padding) {
  if (filter < 1 || stride < 1 || size < 1) return 0;
  if (padding == kTfLitePaddingSame) return static_cast<int>((int64_t{size} + stride - 1) / stride);
  return padding == kTfLitePaddingValid && size >= filter ? (size - filter) / stride + 1 : 0;
}

// The number of rows or columns of padding before the input along one axis.
int64_t PaddingBefore(int64_t size, int64_t results, int64_t filter, int64_t stride, int padding) {
  return padding == kTfLitePaddingSame ? std::max<int64_t>((results - 1) * stride + filter - size, 0) / 2 : 0;
}

// The input positions [begin, end) that the window of one output value covers along an axis. `first` is the position of
// the window's first tap, which may be in the padding.
struct Span {
  int64_t first, begin, end;
};

Span SpanOf(int64_t result, int64_t stride, int64_t before, int64_t filter, int64_t size) {
  const int64_t first = result * stride - before;
  return {first, std::max<int64_t>(first, 0), std::min(first + filter, size)};
}

// The tensors of a substitute for the runtime's own int8 CONV_2D: input, filter, bias or null, output.
struct Conv2dTensors {
  const TfLiteTensor *input, *filter, *bias;
  TfLiteTensor* output;
};

// False if the runtime's own CONV_2D would refuse the filter's scales or zero points.
bool HasScales(const TfLiteTensor& filter) {
  const auto* const affine = static_cast<const TfLiteAffineQuantization*>(filter.quantization.params);
  if (affine == nullptr || affine->scale == nullptr || affine->zero_point == nullptr) return false;
  const TfLiteIntArray& zeros = *affine->zero_point;
  const bool fits = affine->scale->size == filter.dims->data[0] && affine->quantized_dimension == 0;
  return (affine->scale->size == 1 || fits) &&
         std::all_of(zeros.data, zeros.data + zeros.size, [](int zero) { return zero == 0; });
}

bool FindConv2dTensors(TfLiteContext* context, const TfLiteNode& node, Conv2dTensors* found) {
  const TfLiteIntArray& inputs = *node.inputs;
  if (inputs.size < 2 || inputs.size > 3 || node.outputs->size != 1) return false;
  const auto find = [&](int index) {
    return index >= 0 && static_cast<size_t>(index) < context->tensors_size ? &context->tensors[index] : nullptr;
  };
  const int bias = inputs.size == 3 ? inputs.data[2] : kOptionalTensor;
  *found = {find(inputs.data[0]), find(inputs.data[1]), find(bias), find(node.outputs->data[0])};
  if (found->input == nullptr || found->filter == nullptr || found->output == nullptr) return false;
  const auto is_image = [](const TfLiteTensor& tensor) {
    return tensor.type == kTfLiteInt8 && tensor.dims->size == 4 && IsGrid(tensor);
  };
  const TfLiteTensor& filter = *found->filter;
  if (!is_image(*found->input) || found->input->allocation_type != kTfLiteArenaRw) return false;
  if (!is_image(*found->output) || found->output->allocation_type != kTfLiteArenaRw) return false;
  if (filter.type != kTfLiteInt8 || filter.dims->size != 4 || filter.allocation_type != kTfLiteMmapRo) return false;
  if (*std::min_element(filter.dims->data, filter.dims->data + 4) < 1 || !IsReadable(filter)) return false;
  if (!HasScales(filter) || (bias != kOptionalTensor && found->bias == nullptr)) return false;
  if (found->bias == nullptr) return true;
  return found->bias->type == kTfLiteInt32 && found->bias->allocation_type == kTfLiteMmapRo &&
         IsReadable(*found->bias) && found->bias->dims->size == 1 && found->bias->dims->data[0] == filter.dims->data[0];
}

bool FindConv2dScale(const Conv2dTensors& tensors, int channel, Multiplier* scale) {
  const auto& affine = *static_cast<const TfLiteAffineQuantization*>(tensors.filter->quantization.params);
  const TfLiteFloatArray& scales = *affine.scale;
  return Decompose(static_cast<double>(tensors.input->params.scale) *
                       static_cast<double>(scales.data[scales.size == 1 ? 0 : channel]) /
                       static_cast<double>(tensors.output->params.scale),
                   scale);
}

TfLiteStatus PrepareConv2d(TfLiteContext* context, TfLiteNode* node) {
  const auto& params = *static_cast<const TfLiteConvParams*>(node->builtin_data);
  Conv2dTensors tensors;
  if (!FindConv2dTensors(context, *node, &tensors) || !IsActivation(params.activation)) return kTfLiteError;
  const int *in = tensors.input->dims->data, *filter = tensors.filter->dims->data;
  const int height = PooledSize(in[1], filter[1], params.stride_height, params.padding);
  const int width = PooledSize(in[2], filter[2], params.stride_width, params.padding);
  if (height == 0 || width == 0 || in[3] != filter[3]) return kTfLiteError;
  if (params.dilation_height_factor != 1 || params.dilation_width_factor != 1) return kTfLiteError;
  Multiplier scale;
  for (int channel = 0; channel < filter[0]; ++channel) {
    if (!FindConv2dScale(tensors, channel, &scale)) return kTfLiteError;
  }
  return context->ResizeTensor(context, tensors.output, MakeArray({in[0], height, width, filter[0]}));
}

TfLiteStatus RunConv2d(TfLiteContext* context, TfLiteNode* node) {
  const auto& params = *static_cast<const TfLiteConvParams*>(node->builtin_data);
  Conv2dTensors tensors;
  if (!FindConv2dTensors(context, *node, &tensors)) return kTfLiteError;
  const TfLiteTensor &input = *tensors.input, &filter = *tensors.filter, &output = *tensors.output;
  if (input.data == nullptr || output.data == nullptr) return kTfLiteError;
  const int *in = input.dims->data, *out = output.dims->data, *taps = filter.dims->data;
  if (in[0] != out[0] || in[3] != taps[3] || out[3] != taps[0]) return kTfLiteError;
  const int64_t top = PaddingBefore(in[1], out[1], taps[1], params.stride_height, params.padding);
  const int64_t left = PaddingBefore(in[2], out[2], taps[2], params.stride_width, params.padding);
  for (int64_t i = 0; i < int64_t{out[0]} * out[1] * out[2] * out[3]; ++i) {
    const int64_t channel = i % out[3], x = i / out[3] % out[2], y = i / out[3] / out[2] % out[1];
    const int64_t image = i / out[3] / out[2] / out[1];
    const Span rows = SpanOf(y, params.stride_height, top, taps[1], in[1]);
    const Span columns = SpanOf(x, params.stride_width, left, taps[2], in[2]);
    int64_t sum = tensors.bias == nullptr ? 0 : static_cast<const int32_t*>(tensors.bias->data)[channel];
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      for (int64_t column = columns.begin; column < columns.end; ++column) {
        const int64_t pixel = (image * in[1] + row) * in[2] + column;
        const int64_t tap = (channel * taps[1] + row - rows.first) * taps[2] + column - columns.first;
        const int8_t* const values = static_cast<const int8_t*>(input.data) + pixel * in[3];
        const int8_t* const weights = static_cast<const int8_t*>(filter.data) + tap * in[3];
        for (int c = 0; c < in[3]; ++c) sum += (values[c] - input.params.zero_point) * weights[c];
      }
    }
    Multiplier scale;
    if (!FindConv2dScale(tensors, static_cast<int>(channel), &scale)) return kTfLiteError;
    static_cast<int8_t*>(output.data)[i] = ToLevel(Scale(sum, scale), params.activation, output.params);
  }
  return kTfLiteOk;
}

// Checks a pool of tensors of type `type`, with an activation up to `last_activation`, and sets the shape of its
// output.
TfLiteStatus PreparePool(TfLiteContext* context, TfLiteNode* node, TfLiteType type, int last_activation) {
  const std::vector<TfLiteTensor*> tensors = TensorsOf(context, *node, type);
  if (tensors.size() != 2) return kTfLiteError;
  const TfLiteIntArray& shape = *tensors[0]->dims;
  if (shape.size != 4) return kTfLiteError;
  const auto& params = *static_cast<const TfLitePoolParams*>(node->builtin_data);
  const int height = PooledSize(shape.data[1], params.filter_height, params.stride_height, params.padding);
  const int width = PooledSize(shape.data[2], params.filter_width, params.stride_width, params.padding);
  if (height == 0 || width == 0 || params.activation < kTfLiteActNone || params.activation > last_activation) {
    return kTfLiteError;
  }
  return context->ResizeTensor(context, tensors[1], MakeArray({shape.data[0], height, width, shape.data[3]}));
}

// Checks a pool of int8 images. Its input and its output must have the same scale and zero point.
TfLiteStatus PrepareInt8Pool(TfLiteContext* context, TfLiteNode* node) {
  const std::vector<TfLiteTensor*> tensors = TensorsOf(context, *node, kTfLiteInt8);
  if (tensors.size() != 2 || !IsGrid(*tensors[0]) || tensors[0]->params.scale != tensors[1]->params.scale ||
      tensors[0]->params.zero_point != tensors[1]->params.zero_point) {
    return kTfLiteError;
  }
  return PreparePool(context, node, kTfLiteInt8, kTfLiteActRelu6);
}

TfLiteStatus PrepareMaxPool(TfLiteContext* context, TfLiteNode* node) {
  if (!TensorsOf(context, *node, kTfLiteInt8).empty()) return PrepareInt8Pool(context, node);
  return PreparePool(context, node, kTfLiteFloat32, kTfLiteActRelu);
}

// For each output value, calls begin(), then visit(position) for each value of its window, then end(index).
template <typename Begin, typename Visit, typename End>
TfLiteStatus VisitPool(const TfLiteContext& context, const TfLiteNode& node, Begin begin, Visit visit, End end) {
  const TfLiteTensor& input = context.tensors[node.inputs->data[0]];
  const TfLiteTensor& output = context.tensors[node.outputs->data[0]];
  if (input.data == nullptr || output.data == nullptr) return kTfLiteError;
  const auto& params = *static_cast<const TfLitePoolParams*>(node.builtin_data);
  const int *in = input.dims->data, *out = output.dims->data;
  if (input.dims->size != 4 || in[0] != out[0] || in[3] != out[3]) return kTfLiteError;
  const int64_t top = PaddingBefore(in[1], out[1], params.filter_height, params.stride_height, params.padding);
  const int64_t left = PaddingBefore(in[2], out[2], params.filter_width, params.stride_width, params.padding);
  for (int64_t i = 0; i < int64_t{out[0]} * out[1] * out[2] * out[3]; ++i) {
    const int64_t channel = i % out[3], x = i / out[3] % out[2], y = i / out[3] / out[2] % out[1];
    const int64_t image = i / out[3] / out[2] / out[1];
    const Span rows = SpanOf(y, params.stride_height, top, params.filter_height, in[1]);
    const Span columns = SpanOf(x, params.stride_width, left, params.filter_width, in[2]);
    begin();
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      for (int64_t column = columns.begin; column < columns.end; ++column) {
        visit(((image * in[1] + row) * in[2] + column) * in[3] + channel);
      }
    }
    end(i);
  }
  return kTfLiteOk;
}

TfLiteStatus PrepareAveragePool(TfLiteContext* context, TfLiteNode* node) {
  if (!TensorsOf(context, *node, kTfLiteInt8).empty()) return PrepareInt8Pool(context, node);
  return PreparePool(context, node, kTfLiteFloat32, kTfLiteActNone);
}

// A substitute for the runtime's own float AVERAGE_POOL_2D. Runtimes differ in the order of their sums; the substitute
// has the delegate's order, which is first the values of each row, then the rows.
TfLiteStatus RunFloatAveragePool(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor& input = context->tensors[node->inputs->data[0]];
  const auto* const values = static_cast<const float*>(input.data);
  auto* const result = static_cast<float*>(context->tensors[node->outputs->data[0]].data);
  const int64_t row_size = input.dims->size == 4 ? int64_t{input.dims->data[2]} * input.dims->data[3] : 1;
  float sum = 0, row_sum = 0;
  int64_t count = 0, last_row = 0;
  return VisitPool(
      *context, *node, [&] { sum = row_sum = 0, count = 0; },
      [&](int64_t position) {
        const int64_t row = position / row_size;
        if (row != last_row) sum += row_sum, row_sum = 0;
        last_row = row;
        row_sum += values[position];
        ++count;
      },
      [&](int64_t i) { result[i] = (sum + row_sum) / static_cast<float>(count); });
}

// A substitute for the runtime's own AVERAGE_POOL_2D.
TfLiteStatus RunAveragePool(TfLiteContext* context, TfLiteNode* node) {
  if (context->tensors[node->inputs->data[0]].type == kTfLiteFloat32) return RunFloatAveragePool(context, node);
  const auto& params = *static_cast<const TfLitePoolParams*>(node->builtin_data);
  const auto* const values = static_cast<const int8_t*>(context->tensors[node->inputs->data[0]].data);
  const TfLiteTensor& output = context->tensors[node->outputs->data[0]];
  const TfLiteQuantizationParams grid = output.params;
  int64_t sum = 0, count = 0;
  return VisitPool(
      *context, *node, [&] { sum = count = 0; },
      [&](int64_t position) {
        sum += values[position];
        ++count;
      },
      [&](int64_t i) {
        // A window is empty if another node of a damaged model resized the tensor after this node was prepared.
        count = std::max<int64_t>(count, 1);
        const int64_t average = (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
        static_cast<int8_t*>(output.data)[i] = ToLevel(average - grid.zero_point, params.activation, grid);
      });
}

TfLiteStatus RunInt8MaxPool(TfLiteContext* context, TfLiteNode* node) {
  const auto& params = *static_cast<const TfLitePoolParams*>(node->builtin_data);
  const auto* const values = static_cast<const int8_t*>(context->tensors[node->inputs->data[0]].data);
  const TfLiteTensor& output = context->tensors[node->outputs->data[0]];
  const TfLiteQuantizationParams grid = output.params;
  int8_t largest = 0;
  return VisitPool(
      *context, *node, [&] { largest = -128; },
      [&](int64_t position) { largest = std::max(largest, values[position]); },
      [&](int64_t i) {
        static_cast<int8_t*>(output.data)[i] = ToLevel(largest - grid.zero_point, params.activation, grid);
      });
}

// A substitute for the runtime's own MAX_POOL_2D. The runtime does not define the maximum with a NaN; the substitute
// computes it as the delegate does.
TfLiteStatus RunMaxPool(TfLiteContext* context, TfLiteNode* node) {
  if (context->tensors[node->inputs->data[0]].type == kTfLiteInt8) return RunInt8MaxPool(context, node);
  const auto& params = *static_cast<const TfLitePoolParams*>(node->builtin_data);
  const float least = params.activation == kTfLiteActRelu ? 0.0f : -std::numeric_limits<float>::infinity();
  const auto* const values = static_cast<const float*>(context->tensors[node->inputs->data[0]].data);
  auto* const result = static_cast<float*>(context->tensors[node->outputs->data[0]].data);
  float largest = least;
  return VisitPool(
      *context, *node, [&] { largest = least; },
      [&](int64_t position) {
        if (values[position] > largest) largest = values[position];
      },
      [&](int64_t i) { result[i] = largest; });
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
      {"ADD", kTfLiteBuiltinAdd, PrepareAdd, RunAdd},
      {"AVERAGE_POOL_2D", kTfLiteBuiltinAveragePool2d, PrepareAveragePool, RunAveragePool},
      {"CONV_2D", kTfLiteBuiltinConv2d, PrepareConv2d, RunConv2d},
      {"MUL", kTfLiteBuiltinMul, PrepareMultiply, RunMultiply},
      {"PRELU", kTfLiteBuiltinPrelu, PrepareFloats, RunArithmetic<Leak, false>},
      {"CONCATENATION", kTfLiteBuiltinConcatenation, PrepareConcatenation, RunConcatenation},
      {"MAX_POOL_2D", kTfLiteBuiltinMaxPool2d, PrepareMaxPool, RunMaxPool},
  };
  const auto* found = std::find_if(std::begin(builtins), std::end(builtins),
                                   [&op](const Builtin& builtin) { return op == builtin.op; });
  if (found == std::end(builtins)) return false;
  registration->prepare = found->prepare;
  registration->invoke = found->invoke;
  registration->builtin_code = found->code;
  return true;
}

namespace {

// Copies an array into a block of exactly its size, so that a sanitizer detects reads past the end.
template <typename Array, typename T>
Array* MakeArrayOf(const std::vector<T>& values) {
  auto* array = static_cast<Array*>(std::malloc(sizeof(int) + sizeof(T) * values.size()));
  array->size = static_cast<int>(values.size());
  std::copy(values.begin(), values.end(), array->data);
  return array;
}

}  // namespace

TfLiteIntArray* MakeArray(const std::vector<int>& values) { return MakeArrayOf<TfLiteIntArray>(values); }
TfLiteFloatArray* MakeFloatArray(const std::vector<float>& values) { return MakeArrayOf<TfLiteFloatArray>(values); }

}  // namespace litebnn::testing
