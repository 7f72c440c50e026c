#include "tflite/partition/partition.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace litebnn {
namespace {

std::vector<int> Values(const TfLiteIntArray* array) {
  return array == nullptr ? std::vector<int>() : std::vector<int>(array->data, array->data + array->size);
}

bool IsAligned(const void* data, size_t value_bytes) { return reinterpret_cast<uintptr_t>(data) % value_bytes == 0; }

Tensor Describe(const TfLiteTensor& found, int index) {
  Tensor tensor;
  tensor.index = index;
  if (found.name != nullptr) tensor.name = found.name;
  tensor.type = found.type;
  tensor.shape = Values(found.dims);
  tensor.quantization = found.params;
  return tensor;
}

bool CheckIndex(const Node& node, const char* role, int index) {
  if (index >= 0 && static_cast<size_t>(index) < node.context->tensors_size) return true;
  return node.Error("%s: expected a tensor from 0 to %zu, found %d", role, node.context->tensors_size - 1, index);
}

// False after an error: `tensor` is the runtime's and lacks the bytes that were prepared for.
bool CheckMemory(const Node& node, const char* role, const TfLiteTensor& tensor, int index, size_t bytes,
                 size_t value_bytes) {
  const char* name = tensor.name == nullptr ? "" : tensor.name;
  if (tensor.data == nullptr || tensor.bytes < bytes) {
    return node.Error("%s (tensor %d '%.100s'): expected %zu bytes of data, found %zu", role, index, name, bytes,
                      tensor.data == nullptr ? size_t{0} : tensor.bytes);
  }
  if (!IsAligned(tensor.data, value_bytes)) {
    return node.Error("%s (tensor %d '%.100s'): expected data aligned to %zu bytes, found address %p", role, index,
                      name, value_bytes, tensor.data);
  }
  return true;
}

bool ResizeTensor(TfLiteContext* context, int index, const std::vector<int32_t>& shape) {
  auto* dims = static_cast<TfLiteIntArray*>(std::malloc(sizeof(int) * (shape.size() + 1)));
  if (dims == nullptr) return false;
  dims->size = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), dims->data);
  return context->ResizeTensor(context, &context->tensors[index], dims) == kTfLiteOk;
}

}  // namespace

void Partition::AddNode(const OpType& type, int index, const TfLiteNode& node) {
  Step step = {};
  step.type = &type;
  step.index = index;
  for (int tensor : Values(node.inputs)) step.inputs.push_back({tensor});
  for (int tensor : Values(node.outputs)) step.outputs.push_back({tensor});
  step.options = static_cast<const uint8_t*>(node.custom_initial_data);
  step.options_size = static_cast<size_t>(std::max(node.custom_initial_data_size, 0));
  step.builtin_data = node.builtin_data;
  step.input_data.resize(step.inputs.size());
  step.output_data.resize(step.outputs.size());
  steps_.push_back(std::move(step));
}

void Partition::SetOutputs(const TfLiteIntArray& tensors) {
  outputs_.insert(tensors.data, tensors.data + tensors.size);
  FuseAdditions();
}

void Partition::FuseAdditions() {
  std::unordered_map<int, int> readers;
  for (const Step& step : steps_) {
    for (const Binding& input : step.inputs) ++readers[input.tensor];
  }
  for (size_t i = 1; i < steps_.size(); ++i) {
    Step &convolution = steps_[i - 1], &addition = steps_[i];
    if (convolution.type != &kBconv2dOp || (addition.type != &kAddOp && addition.type != &kAddReluOp)) continue;
    // A convolution with the wrong number of them is refused when it is prepared.
    if (convolution.inputs.size() < kBconv2dOp.min_inputs || convolution.inputs.size() > kBconv2dOp.max_inputs ||
        convolution.outputs.size() != 1) {
      continue;
    }
    const int sum = convolution.outputs[0].tensor;
    const Binding &first = addition.inputs[0], &second = addition.inputs[1];
    if (readers[sum] != 1 || outputs_.count(sum) != 0 || (first.tensor != sum && second.tensor != sum)) continue;

    convolution.type = addition.type == &kAddOp ? &kBconv2dAddOp : &kBconv2dAddReluOp;
    convolution.inputs.resize(kBconv2dOp.max_inputs, {kOptionalTensor});
    convolution.inputs.push_back(first.tensor == sum ? second : first);
    convolution.outputs = addition.outputs;
    convolution.input_data.resize(convolution.inputs.size());
    steps_.erase(steps_.begin() + static_cast<ptrdiff_t>(i));
  }
}

bool Partition::Prepare(TfLiteContext* context, const Isa& isa, int num_threads, Arena* arena) {
  internal_.clear();
  buffers_.clear();
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (!PrepareStep(context, isa, static_cast<int>(i))) return false;
  }
  return PlaceBuffers(context, num_threads, arena);
}

bool Partition::PrepareStep(TfLiteContext* context, const Isa& isa, int number) {
  Step& step = steps_[static_cast<size_t>(number)];
  Node node = {context, step.type->name, step.index,        step.type->input_names, {},
               {},      step.options,    step.options_size, step.builtin_data};

  if (step.inputs.size() < step.type->min_inputs || step.inputs.size() > step.type->max_inputs) {
    return node.Error("inputs: expected %zu to %zu, found %zu", step.type->min_inputs, step.type->max_inputs,
                      step.inputs.size());
  }
  if (step.outputs.size() != 1) return node.Error("outputs: expected 1, found %zu", step.outputs.size());

  std::vector<Tensor> inputs, outputs;
  if (!DescribeInputs(node, number, &inputs) || !DescribeOutputs(node, number, &outputs)) return false;
  for (const Tensor& tensor : inputs) {
    node.inputs.push_back(tensor.index == kOptionalTensor ? nullptr : &tensor);
  }
  for (Tensor& tensor : outputs) node.outputs.push_back(&tensor);

  if (step.op == nullptr) step.op = step.type->create(isa);
  if (step.op == nullptr) return node.Error("out of memory");
  return step.op->Prepare(node) && KeepOutputs(node, number, outputs);
}

bool Partition::DescribeInputs(const Node& node, int number, std::vector<Tensor>* tensors) {
  Step& step = steps_[static_cast<size_t>(number)];
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    Binding& binding = step.inputs[i];
    const char* role = step.type->input_names[i];
    // The first input is never optional.
    if (binding.tensor == kOptionalTensor && i > 0) {
      tensors->emplace_back();
      continue;
    }
    if (!CheckIndex(node, role, binding.tensor)) return false;
    const auto internal = internal_.find(binding.tensor);
    binding.internal = internal != internal_.end();
    if (binding.internal) {
      tensors->push_back(internal->second.tensor);
      binding.buffer = internal->second.buffer;
      buffers_[binding.buffer].last = number;
    } else {
      tensors->push_back(Describe(node.context->tensors[binding.tensor], binding.tensor));
    }

    Tensor& tensor = tensors->back();
    binding.bytes = TensorBytes(tensor);
    binding.value_bytes = TypeBytes(tensor.type);
    if (binding.bytes == 0) {
      return node.Error(
          "%s (tensor %d '%.100s'): expected 1 to 2147483647 values of type FLOAT32, INT32, INT8 or BOOL, "
          "found %s of shape %s",
          role, tensor.index, tensor.name, TypeName(tensor.type), ShapeText(tensor.shape).c_str());
    }
    const TfLiteTensor& found = node.context->tensors[binding.tensor];
    if (!binding.internal && IsConstant(found)) {
      if (!CheckMemory(node, role, found, binding.tensor, binding.bytes, binding.value_bytes)) return false;
      tensor.constant = found.data;
    }
  }
  return true;
}

bool Partition::DescribeOutputs(const Node& node, int number, std::vector<Tensor>* tensors) const {
  for (const Binding& binding : steps_[static_cast<size_t>(number)].outputs) {
    if (!CheckIndex(node, "output", binding.tensor)) return false;
    const TfLiteTensor& found = node.context->tensors[binding.tensor];
    tensors->push_back(Describe(found, binding.tensor));
    if (IsConstant(found)) {
      return node.Error("output (tensor %d '%.100s'): expected a tensor to write, found a constant", binding.tensor,
                        tensors->back().name);
    }
  }
  return true;
}

bool Partition::KeepOutputs(const Node& node, int number, const std::vector<Tensor>& tensors) {
  Step& step = steps_[static_cast<size_t>(number)];
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    const Tensor& tensor = tensors[i];
    Binding& binding = step.outputs[i];
    binding.bytes = TensorBytes(tensor);
    binding.value_bytes = TypeBytes(tensor.type);
    binding.internal = outputs_.count(binding.tensor) == 0;
    if (binding.bytes == 0) {
      return node.Error("output (tensor %d '%.100s'): expected at most 2147483647 values, found shape %s", tensor.index,
                        tensor.name, ShapeText(tensor.shape).c_str());
    }
    if (binding.internal) {
      binding.buffer = BufferFor(number, binding);
      internal_[binding.tensor] = {tensor, binding.buffer};
    } else if (!ResizeTensor(node.context, binding.tensor, tensor.shape)) {
      return node.Error("output (tensor %d '%.100s'): expected the runtime to resize it to %s, found that it does not",
                        tensor.index, tensor.name, ShapeText(tensor.shape).c_str());
    }
  }
  return true;
}

size_t Partition::BufferFor(int number, const Binding& output) {
  const Step& step = steps_[static_cast<size_t>(number)];
  if (const std::optional<size_t> input = step.op->OverwritableInput()) {
    const Binding& overwritten = step.inputs[*input];
    if (overwritten.internal && overwritten.bytes == output.bytes && LastReader(overwritten.tensor) == number) {
      return overwritten.buffer;
    }
  }
  buffers_.push_back({output.bytes, number, number, 0});
  return buffers_.size() - 1;
}

int Partition::LastReader(int tensor) const {
  int last = -1;
  for (size_t i = 0; i < steps_.size(); ++i) {
    for (const Binding& input : steps_[i].inputs) {
      if (input.tensor == tensor) last = static_cast<int>(i);
    }
  }
  return last;
}

bool Partition::PlaceBuffers(TfLiteContext* context, int num_threads, Arena* arena) {
  memory_use_ = {};
  for (size_t i = 0; i < steps_.size(); ++i) {
    const int number = static_cast<int>(i);
    steps_[i].workspace = buffers_.size();
    buffers_.push_back({steps_[i].op->WorkspaceBytes(num_threads), number, number, 0});
    memory_use_.owned_bytes += steps_[i].op->OwnedBytes();
  }
  for (const ArenaBuffer& buffer : buffers_) memory_use_.unshared_bytes += buffer.bytes;
  return (PlanArena(&buffers_, &memory_use_.arena_bytes) && arena->Reserve(memory_use_.arena_bytes)) ||
         ReportOutOfMemory(context);
}

bool Partition::ReportOutOfMemory(TfLiteContext* context) const {
  context->ReportError(context, "litebnn: out of memory for %zu bytes of intermediate tensors. ",
                       memory_use_.arena_bytes);
  return false;
}

bool Partition::Run(TfLiteContext* context, ThreadPool& pool, const Arena& arena) {
  // Another one's Prepare may have tried to enlarge it in vain.
  if (arena.capacity() < memory_use_.arena_bytes) return ReportOutOfMemory(context);
  for (Step& step : steps_) {
    const auto find = [&](const Binding& binding, const char* role) -> void* {
      if (binding.internal) return arena.data() + buffers_[binding.buffer].offset;
      const TfLiteTensor& tensor = context->tensors[binding.tensor];
      const Node node = {context, step.type->name, step.index, step.type->input_names, {}, {}, nullptr, 0, nullptr};
      return CheckMemory(node, role, tensor, binding.tensor, binding.bytes, binding.value_bytes) ? tensor.data
                                                                                                 : nullptr;
    };
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const Binding& binding = step.inputs[i];
      if (binding.tensor == kOptionalTensor) continue;
      step.input_data[i] = find(binding, step.type->input_names[i]);
      if (step.input_data[i] == nullptr) return false;
    }
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      step.output_data[i] = find(step.outputs[i], "output");
      if (step.output_data[i] == nullptr) return false;
    }
    step.op->Run(pool, step.input_data.data(), step.output_data.data(), arena.data() + buffers_[step.workspace].offset);
  }
  return true;
}

}  // namespace litebnn
