// The checks of a node's tensors and options while it is prepared. Each error message says what was expected.
#pragma once

#include "litebnn_tflm.h"
#include "tflite/ops/options.h"

namespace tflite {
namespace micro {
namespace lce {

namespace contract = ::litebnn::contract;

// The options of a node, as the model file stores them.
struct Options {
  const uint8_t* data;
  size_t size;
};

struct Tensor {
  TfLiteType type;
  const TfLiteIntArray* dims;
  const void* constant;  // null if the tensor is computed
  float scale;
  int32_t zero_point;

  int32_t rank() const { return dims->size; }
  int32_t size(int axis) const { return dims->data[axis]; }
  int32_t last() const { return dims->data[dims->size - 1]; }
};

inline int32_t PackedWords(int32_t channels) { return (channels - 1) / 32 + 1; }

class Node {
 public:
  // `input_names` are the names of the inputs in error messages.
  Node(TfLiteContext* context, const TfLiteNode* node, const char* op, const char* const* input_names)
      : context_(context), node_(node), op_(op), input_names_(input_names) {}

  // These functions report an error and return false.
  bool Error(const char* problem) const;
  bool Error(const char* name, const char* expected, int32_t found) const;

  bool CheckArity(int least, int most) const;
  bool HasInput(int index) const;
  // Reads the shape and type of an input. Each size must be at least 1, and the number of values at most 2^31 - 1.
  bool ReadInput(int index, Tensor* tensor) const;
  bool ReadOutput(Tensor* tensor) const;
  // Checks that the scale is above 0, and that the zero point fits an int8.
  bool CheckQuantization(const char* name, const Tensor& tensor) const;
  // Checks that the model file has the expected output shape, because TensorFlow Lite Micro resizes no tensor.
  bool CheckOutputShape(const Tensor& output, const int32_t (&expected)[4]) const;

  // Reads the options to a structure of options.h.
  template <class Values>
  bool ReadOptions(Values* values) const {
    const Options& options = *static_cast<const Options*>(node_->user_data);
    ::litebnn::OptionReader reader(options.data, options.size);
    return ::litebnn::ReadOptions(&reader, values) || Error(reader.problem());
  }

  // Allocates memory that lives as long as the interpreter. Reports an error and returns null if there is not enough.
  void* Allocate(int64_t bytes) const;
  template <class T>
  T* AllocateArray(int64_t count) const {
    return static_cast<T*>(Allocate(count * static_cast<int64_t>(sizeof(T))));
  }
  bool RequestScratch(int32_t words, int* index) const;

 private:
  bool Read(const char* name, int index, Tensor* tensor) const;

  TfLiteContext* context_;
  const TfLiteNode* node_;
  const char* op_;
  const char* const* input_names_;
};

// The number of rows of a tensor: the product of all axes but the last.
int32_t RowsOf(const Tensor& tensor);

// The filter size, stride, dilation and padding of a window along one axis.
struct Axis {
  const char* name;
  int32_t input, filter, stride, dilation;
  int32_t before, after;  // explicit padding
};

// Computes the size of an op's output along one axis, and the padding before its input.
bool Slide(const Node& node, const Axis& axis, int32_t padding, int32_t* output, int32_t* before);

// This function is the `init` of each op. It allocates memory for the op's `State`, whose first member is the node's
// Options.
template <class State>
void* Init(TfLiteContext* context, const char* buffer, size_t length) {
  State* const state = static_cast<State*>(GetMicroContext(context)->AllocatePersistentBuffer(sizeof(State)));
  if (state == nullptr) return nullptr;
  *state = State();
  state->options.data = reinterpret_cast<const uint8_t*>(buffer);
  state->options.size = length;
  return state;
}

// The op with these functions, which keep a State for each node.
template <class State>
Op MakeOp(const char* name, TfLiteStatus (*prepare)(TfLiteContext*, TfLiteNode*),
          TfLiteStatus (*invoke)(TfLiteContext*, TfLiteNode*)) {
  Op op = {name, TFLMRegistration()};
  op.registration.init = Init<State>;
  op.registration.prepare = prepare;
  op.registration.invoke = invoke;
  return op;
}

inline void* DataOf(TfLiteContext* context, int tensor) {
  return GetMicroContext(context)->GetEvalTensor(tensor)->data.data;
}

Op QuantizeOp();
Op DequantizeOp();
Op Bconv2dOp();
Op BMaxPool2dOp();

}  // namespace lce
}  // namespace micro
}  // namespace tflite
