#include "tflite/runtime/node.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>

namespace litebnn {
namespace {

std::string Format(const char* format, va_list arguments) {
  char text[512];
  std::vsnprintf(text, sizeof(text), format, arguments);
  return text;
}

std::string TypeNames(std::initializer_list<TfLiteType> types) {
  std::string names;
  for (TfLiteType type : types) {
    if (!names.empty()) names += " or ";
    names += TypeName(type);
  }
  return names;
}

bool Contains(std::initializer_list<TfLiteType> types, TfLiteType type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

// True for values in the range of int8.
bool IsZeroPoint(int32_t zero_point) {
  return zero_point >= std::numeric_limits<int8_t>::min() && zero_point <= std::numeric_limits<int8_t>::max();
}
constexpr char kZeroPointError[] = "quantization: expected a zero point from -128 to 127, found %d";

}  // namespace

size_t TypeBytes(TfLiteType type) {
  switch (type) {
    case kTfLiteFloat32:
    case kTfLiteInt32:
      return 4;
    case kTfLiteInt8:
    case kTfLiteBool:
      return 1;
    default:
      return 0;
  }
}

const char* TypeName(TfLiteType type) {
  // Names of the types, in the order of TfLiteType's values.
  constexpr const char* kNames[] = {"NOTYPE", "FLOAT32", "INT32",     "UINT8", "INT64",   "STRING",
                                    "BOOL",   "INT16",   "COMPLEX64", "INT8",  "FLOAT16", "FLOAT64"};
  const auto value = static_cast<size_t>(type);
  return value < std::size(kNames) ? kNames[value] : "another type";
}

std::string ShapeText(const std::vector<int32_t>& shape) {
  constexpr size_t kShown = 8;
  std::string text = "[";
  for (size_t i = 0; i < shape.size() && i < kShown; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + (shape.size() > kShown ? ", ...]" : "]");
}

bool IsConstant(const TfLiteTensor& tensor) {
  return tensor.allocation_type == kTfLiteMmapRo || tensor.allocation_type == kTfLitePersistentRo;
}

int64_t CountValues(const std::vector<int32_t>& shape, size_t begin, size_t end) {
  int64_t count = 1;
  for (size_t i = begin; i < end; ++i) count *= shape[i];
  return count;
}

double CountKnownValues(const TfLiteIntArray* dims) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  if (dims == nullptr || dims->size > kMaxRank) return kUnknown;
  double values = 1;
  for (int i = 0; i < dims->size; ++i) values *= dims->data[i] < 1 ? kUnknown : dims->data[i];
  return values;
}

size_t TensorBytes(const Tensor& tensor) {
  int64_t count = 1;
  for (int32_t size : tensor.shape) {
    if (size < 1) return 0;
    count *= size;
    if (count > std::numeric_limits<int32_t>::max()) return 0;
  }
  const uint64_t bytes = static_cast<uint64_t>(count) * TypeBytes(tensor.type);
  return bytes > std::numeric_limits<size_t>::max() ? 0 : static_cast<size_t>(bytes);
}

bool Node::Error(const char* format, ...) const {
  va_list arguments;
  va_start(arguments, format);
  const std::string message = Format(format, arguments);
  va_end(arguments);
  // The text ends in a space, because some runtimes append the next message without a newline.
  if (index == kUnknownIndex) {
    context->ReportError(context, "litebnn: %s: %s. ", op_name, message.c_str());
  } else {
    context->ReportError(context, "litebnn: %s, node %d: %s. ", op_name, index, message.c_str());
  }
  return false;
}

bool Node::TensorError(const char* role, const Tensor& tensor, const char* format, va_list arguments) const {
  return Error("%s (tensor %d '%.100s'): %s", role, tensor.index, tensor.name, Format(format, arguments).c_str());
}

bool Node::InputError(size_t position, const char* format, ...) const {
  va_list arguments;
  va_start(arguments, format);
  TensorError(InputName(input_names, position), *inputs[position], format, arguments);
  va_end(arguments);
  return false;
}

bool Node::OutputError(const char* format, ...) const {
  va_list arguments;
  va_start(arguments, format);
  TensorError("output", *outputs[0], format, arguments);
  va_end(arguments);
  return false;
}

bool Node::CheckInputType(size_t position, std::initializer_list<TfLiteType> expected) const {
  const TfLiteType found = inputs[position]->type;
  if (Contains(expected, found)) return true;
  return InputError(position, "type: expected %s, found %s", TypeNames(expected).c_str(), TypeName(found));
}

bool Node::CheckOutputType(std::initializer_list<TfLiteType> expected) const {
  const TfLiteType found = outputs[0]->type;
  if (Contains(expected, found)) return true;
  return OutputError("type: expected %s, found %s", TypeNames(expected).c_str(), TypeName(found));
}

bool Node::CheckInputRank(size_t position, size_t expected) const {
  const std::vector<int32_t>& shape = inputs[position]->shape;
  if (shape.size() == expected) return true;
  return InputError(position, "shape: expected %zu dimensions, found %s", expected, ShapeText(shape).c_str());
}

bool Node::CheckInputZeroPoint(size_t position) const {
  const int32_t found = inputs[position]->quantization.zero_point;
  return IsZeroPoint(found) || InputError(position, kZeroPointError, found);
}

bool Node::CheckOutputQuantization() const {
  const TfLiteQuantizationParams& found = outputs[0]->quantization;
  if (!std::isfinite(found.scale) || found.scale <= 0) {
    return OutputError("quantization: expected one scale above 0, found %g", static_cast<double>(found.scale));
  }
  return IsZeroPoint(found.zero_point) || OutputError(kZeroPointError, found.zero_point);
}

bool Node::CheckData(const char* role, int tensor, size_t bytes, size_t value_bytes) const {
  const TfLiteTensor& found = context->tensors[tensor];
  const char* name = found.name == nullptr ? "" : found.name;
  const size_t found_bytes = found.data == nullptr ? 0 : found.bytes;
  if (found.data == nullptr || found_bytes < bytes) {
    return Error("%s (tensor %d '%.100s'): expected %zu bytes of data, found %zu", role, tensor, name, bytes,
                 found_bytes);
  }
  if (reinterpret_cast<uintptr_t>(found.data) % value_bytes != 0) {
    return Error("%s (tensor %d '%.100s'): expected data aligned to %zu bytes, found address %p", role, tensor, name,
                 value_bytes, found.data);
  }
  return true;
}

}  // namespace litebnn
