#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "tflite/partition/stages.h"

namespace litebnn {
namespace {

Tensor DescribeTensor(const TfLiteTensor& found, int index) {
  Tensor tensor;
  tensor.index = index;
  if (found.name != nullptr) tensor.name = found.name;
  tensor.type = found.type;
  if (found.dims != nullptr) tensor.shape.assign(found.dims->data, found.dims->data + found.dims->size);
  tensor.quantization = found.params;
  return tensor;
}

bool CheckTensor(const Node& node, const char* role, int index) {
  if (index < 0 || static_cast<size_t>(index) >= node.context->tensors_size) {
    return node.Error("%s: expected a tensor from 0 to %zu, found %d", role, node.context->tensors_size - 1, index);
  }
  const TfLiteIntArray* dims = node.context->tensors[index].dims;
  if (dims == nullptr || dims->size <= kMaxRank) return true;
  return node.Error("%s (tensor %d): expected at most %d dimensions, found %d", role, index, kMaxRank, dims->size);
}

bool ResizeTensor(TfLiteContext* context, int index, const std::vector<int32_t>& shape) {
  auto* dims = static_cast<TfLiteIntArray*>(std::malloc(sizeof(int) * (shape.size() + 1)));
  if (dims == nullptr) return false;
  dims->size = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), dims->data);
  return context->ResizeTensor(context, &context->tensors[index], dims) == kTfLiteOk;
}

// The tensors that only the partition uses, by index. Earlier steps have set their shapes.
using InternalTensors = std::unordered_map<int, Tensor>;

// Fills `tensors` with the node's inputs, in the node's order.
bool DescribeInputs(const Node& node, const InternalTensors& internal, Step* step, std::vector<Tensor>* tensors) {
  for (size_t i = 0; i < step->inputs.size(); ++i) {
    Binding& binding = step->inputs[i];
    const char* role = InputName(step->type->input_names, i);
    // The first input of an op is never optional.
    if (binding.tensor == kOptionalTensor && i > 0) {
      tensors->emplace_back();
      continue;
    }
    if (!CheckTensor(node, role, binding.tensor)) return false;
    const TfLiteTensor& found = node.context->tensors[binding.tensor];
    const auto written = internal.find(binding.tensor);
    binding.internal = written != internal.end();
    tensors->push_back(binding.internal ? written->second : DescribeTensor(found, binding.tensor));

    Tensor& tensor = tensors->back();
    binding.bytes = TensorBytes(tensor);
    binding.value_bytes = TypeBytes(tensor.type);
    if (binding.bytes == 0) {
      return node.Error(
          "%s (tensor %d '%.100s'): expected 1 to 2147483647 values of type FLOAT32, INT32, INT8 or BOOL, "
          "found %s of shape %s",
          role, tensor.index, tensor.name, TypeName(tensor.type), ShapeText(tensor.shape).c_str());
    }
    if (!binding.internal && IsConstant(found)) {
      if (!node.CheckData(role, binding.tensor, binding.bytes, binding.value_bytes)) return false;
      tensor.constant = found.data;
    }
  }
  return true;
}

bool DescribeOutput(const Node& node, int index, Tensor* tensor) {
  if (!CheckTensor(node, "output", index)) return false;
  const TfLiteTensor& found = node.context->tensors[index];
  *tensor = DescribeTensor(found, index);
  if (!IsConstant(found)) return true;
  return node.Error("output (tensor %d '%.100s'): expected a tensor to write, found a constant", index, tensor->name);
}

bool KeepOutput(const Node& node, const std::unordered_set<int>& outputs, const Tensor& tensor, Binding* binding,
                InternalTensors* internal) {
  binding->bytes = TensorBytes(tensor);
  binding->value_bytes = TypeBytes(tensor.type);
  binding->internal = outputs.count(binding->tensor) == 0;
  if (binding->bytes == 0) {
    return node.Error("output (tensor %d '%.100s'): expected at most 2147483647 values, found shape %s", tensor.index,
                      tensor.name, ShapeText(tensor.shape).c_str());
  }
  if (binding->internal) {
    (*internal)[binding->tensor] = tensor;
    return true;
  }
  if (ResizeTensor(node.context, binding->tensor, tensor.shape)) return true;
  return node.Error("output (tensor %d '%.100s'): expected the runtime to resize it to %s, found that it does not",
                    tensor.index, tensor.name, ShapeText(tensor.shape).c_str());
}

// Creates the op of a step that is prepared for the first time.
bool PrepareNewOp(const Node& node, const Isa& isa, RepackBudget* budget, Step* step) {
  std::unique_ptr<Op> op = step->type->create(isa);
  if (op == nullptr) return node.Error("out of memory");
  if (!op->Prepare(node)) return false;
  if (!budget->Take(op->OwnedBytes())) {
    return node.Error("repacked weights: expected at most %llu bytes, which other nodes leave, found %zu",
                      static_cast<unsigned long long>(budget->left()), op->OwnedBytes());
  }
  step->op = std::move(op);
  return true;
}

bool PrepareStep(TfLiteContext* context, const Isa& isa, const std::unordered_set<int>& outputs, RepackBudget* budget,
                 Step* step, InternalTensors* internal) {
  Node node = step->Describe(context);
  std::vector<Tensor> inputs, written(step->outputs.size());
  if (!DescribeInputs(node, *internal, step, &inputs)) return false;
  for (size_t i = 0; i < written.size(); ++i) {
    if (!DescribeOutput(node, step->outputs[i].tensor, &written[i])) return false;
    node.outputs.push_back(&written[i]);
  }
  for (const Tensor& tensor : inputs) node.inputs.push_back(tensor.index == kOptionalTensor ? nullptr : &tensor);
  step->input_data.resize(inputs.size());
  step->output_data.resize(written.size());

  const bool prepared = step->op == nullptr ? PrepareNewOp(node, isa, budget, step) : step->op->Prepare(node);
  if (!prepared) return false;
  for (size_t i = 0; i < written.size(); ++i) {
    if (!KeepOutput(node, outputs, written[i], &step->outputs[i], internal)) return false;
  }
  return true;
}

}  // namespace

bool PrepareSteps(TfLiteContext* context, const Isa& isa, const std::unordered_set<int>& outputs, RepackBudget* budget,
                  std::vector<Step>* steps) {
  InternalTensors internal;
  return std::all_of(steps->begin(), steps->end(),
                     [&](Step& step) { return PrepareStep(context, isa, outputs, budget, &step, &internal); });
}

}  // namespace litebnn
