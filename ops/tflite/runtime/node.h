// The file declares what an op can see of the model: one node, its tensors, its options, and functions that report
// errors.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "tflite/runtime/abi.h"

namespace litebnn {

// The upper limit for the rank of a tensor, above that of any model. Shapes are traversed for each node that reads
// them.
constexpr int kMaxRank = 256;

struct Tensor {
  int index = kOptionalTensor;  // in the runtime's list of tensors
  const char* name = "";
  TfLiteType type = kTfLiteNoType;
  std::vector<int32_t> shape;
  TfLiteQuantizationParams quantization = {};
  const void* constant = nullptr;  // the values if they are part of the model, otherwise null
};

// Bytes of one value; 0 for types that no op of litebnn supports.
size_t TypeBytes(TfLiteType type);
const char* TypeName(TfLiteType type);
std::string ShapeText(const std::vector<int32_t>& shape);

// True if the tensor's values are part of the model file.
bool IsConstant(const TfLiteTensor& tensor);

// The number of values in the dimensions [begin, end) of `shape`. Shapes that reach an op have at most INT32_MAX
// values.
int64_t CountValues(const std::vector<int32_t>& shape, size_t begin, size_t end);

// Number of values of one of the runtime's shapes; infinity if it is unknown, for example because a size is below 1.
double CountKnownValues(const TfLiteIntArray* dims);

// Bytes of a tensor. The result is 0 if a dimension is below 1, the type is unsupported, there are more than INT32_MAX
// values, or the bytes exceed SIZE_MAX.
size_t TensorBytes(const Tensor& tensor);

// The name of an input in error messages. If a node has more inputs than names, the names repeat.
constexpr size_t kMaxInputNames = 8;
inline const char* InputName(const char* const* names, size_t position) {
  size_t count = 1;
  while (count < kMaxInputNames && names[count] != nullptr) ++count;
  return names[position % count];
}

struct Node {
  static constexpr int kUnknownIndex = -1;

  TfLiteContext* context;
  const char* op_name;
  int index;  // kUnknownIndex if the runtime hides it; its own message then follows and names the node
  const char* const* input_names;     // in the format of InputName
  std::vector<const Tensor*> inputs;  // null if an optional input is left out
  std::vector<Tensor*> outputs;
  const uint8_t* options;
  size_t options_size;
  const void* builtin_data;  // options of a builtin op, null for others
  // The tensors that fusion removed: the one between an int8 convolution and its ADD, or the results of MUL and ADD of
  // each batch norm. The result of a missing MUL or ADD is kOptionalTensor. Other nodes have no such tensors.
  const int* fused_outputs = nullptr;

  // The input at `position`, or null if it is left out.
  const Tensor* Input(size_t position) const { return position < inputs.size() ? inputs[position] : nullptr; }

  // The functions below check a node. Each returns true, or reports a failure through the runtime's error reporter and
  // returns false. The functions whose names end in Error always return false.
  bool Error(const char* format, ...) const __attribute__((format(printf, 2, 3)));
  bool InputError(size_t position, const char* format, ...) const __attribute__((format(printf, 3, 4)));
  bool OutputError(const char* format, ...) const __attribute__((format(printf, 2, 3)));
  bool CheckInputType(size_t position, std::initializer_list<TfLiteType> expected) const;
  bool CheckOutputType(std::initializer_list<TfLiteType> expected) const;
  bool CheckInputRank(size_t position, size_t expected) const;
  // Checks that the zero point of an int8 input fits an int8.
  bool CheckInputZeroPoint(size_t position) const;
  // Checks that the scale of an int8 output is finite and above 0, and that the zero point fits an int8.
  bool CheckOutputQuantization() const;
  // Checks that the runtime's tensor `tensor` has `bytes` bytes of data, aligned to `value_bytes`.
  bool CheckData(const char* role, int tensor, size_t bytes, size_t value_bytes) const;

 private:
  bool TensorError(const char* role, const Tensor& tensor, const char* format, va_list arguments) const;
};

}  // namespace litebnn
