#include "tflite/partition/partition.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <unordered_map>
#include <utility>

#include "tflite/ops/op_list.h"

namespace litebnn {
namespace {

size_t Count(const TfLiteIntArray* tensors) { return tensors == nullptr ? 0 : static_cast<size_t>(tensors->size); }

std::vector<Binding> Bindings(const TfLiteIntArray* tensors) {
  std::vector<Binding> bindings;
  for (size_t i = 0; i < Count(tensors); ++i) bindings.push_back({tensors->data[i]});
  return bindings;
}

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

// Validates each step (a node, or several fused ones) in order, and computes the shape of its output. Resizes the
// tensors in `outputs`, which the runtime reads. The first call takes the memory that the steps' ops own, such as
// repacked weights, from `budget`.
bool PrepareSteps(TfLiteContext* context, const Isa& isa, const std::unordered_set<int>& outputs, RepackBudget* budget,
                  std::vector<Step>* steps) {
  InternalTensors internal;
  return std::all_of(steps->begin(), steps->end(),
                     [&](Step& step) { return PrepareStep(context, isa, outputs, budget, &step, &internal); });
}

bool RunTask(TfLiteContext* context, ThreadPool& pool, const MemoryPlan& plan, const Task& task, Arena& arena,
             std::vector<Step>* steps) {
  Step& step = (*steps)[task.step];
  const Node node = step.Describe(context);
  // Returns the data of a tensor. If the runtime's tensor does not match what was prepared, reports an error and
  // returns null.
  const auto find = [&](const Binding& binding, const char* role) -> void* {
    if (binding.internal) return arena.data() + plan.buffers[binding.buffer].offset;
    const bool has_data = node.CheckData(role, binding.tensor, binding.bytes, binding.value_bytes);
    return has_data ? context->tensors[binding.tensor].data : nullptr;
  };
  const bool has_inputs = step.ForInputs(task.slice, [&](size_t i) {
    if (step.inputs[i].tensor == kOptionalTensor) return true;
    step.input_data[i] = find(step.inputs[i], InputName(step.type->input_names, i));
    return step.input_data[i] != nullptr;
  });
  if (!has_inputs) return false;
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    step.output_data[i] = find(step.outputs[i], "output");
    if (step.output_data[i] == nullptr) return false;
  }
  step.op->Run(pool, step.input_data.data(), step.output_data.data(),
               arena.data() + plan.buffers[step.workspace].offset, task.slice);
  return true;
}

// Runs the tasks. The function allocates nothing, so `arena` must already have at least `plan.arena_bytes` bytes.
bool RunTasks(TfLiteContext* context, ThreadPool& pool, const MemoryPlan& plan, const std::vector<Task>& tasks,
              Arena& arena, std::vector<Step>* steps) {
  for (const Task& task : tasks) {
    if (!RunTask(context, pool, plan, task, arena, steps)) return false;
  }
  return true;
}

}  // namespace

bool Partition::AddNode(TfLiteContext* context, const OpType& type, int index, const TfLiteNode& node) {
  Step step = {&type,
               index,
               {},
               {},
               static_cast<const uint8_t*>(node.custom_initial_data),
               static_cast<size_t>(std::max(node.custom_initial_data_size, 0)),
               node.builtin_data};
  // The number of tensors is checked first, because a node of a malicious model may have any number of them.
  const size_t inputs = Count(node.inputs), outputs = Count(node.outputs);
  if (inputs < type.min_inputs || inputs > type.max_inputs) {
    return step.Describe(context).Error("inputs: expected %zu to %zu, found %zu", type.min_inputs, type.max_inputs,
                                        inputs);
  }
  if (outputs != 1) return step.Describe(context).Error("outputs: expected 1, found %zu", outputs);
  step.inputs = Bindings(node.inputs);
  step.outputs = Bindings(node.outputs);
  step.nodes.push_back(index);
  steps_.push_back(std::move(step));
  return true;
}

bool Partition::AddNodes(TfLiteContext* context, const TfLiteIntArray& indices, const NodeTypes& types) {
  for (int i = 0; i < indices.size; ++i) {
    PlannedNode planned;
    if (!ReadNode(context, indices.data[i], &planned)) return false;
    const auto index = static_cast<size_t>(planned.index);
    const OpType* const type = index < types.size() ? types[index] : nullptr;
    if (type == nullptr) {
      context->ReportError(context,
                           "litebnn: %s, node %d: expected an op that the delegate has claimed, found that the runtime "
                           "gives it another. ",
                           planned.OpName(), planned.index);
      return false;
    }
    if (!AddNode(context, *type, planned.index, *planned.node)) return false;
  }
  return true;
}

void Partition::SetOutputs(const TfLiteIntArray& tensors) {
  outputs_.insert(tensors.data, tensors.data + tensors.size);
  FuseGates(outputs_, &steps_);
  FuseConvolutions(outputs_, &steps_);
  FuseAverages(&steps_);
  FuseBatchNorms(outputs_, &steps_);
  FusePackings(outputs_, &steps_);
  FuseImages(outputs_, &steps_);
}

bool Partition::UnpackWeights(TfLiteContext* context, const Isa& isa, ThreadPool& pool, RepackBudget* budget,
                              Arena* weights) {
  std::vector<Step> all;
  all.swap(steps_);
  for (Step& step : all) {
    (step.type == &kUnpackWeightsOpType ? &unpacking_ : &steps_)->push_back(std::move(step));
  }
  // There are no outputs yet, so the runtime's tensors keep their shapes.
  if (!PrepareSteps(context, isa, outputs_, budget, &unpacking_)) return false;
  uint64_t total = 0;
  for (const Step& step : unpacking_) total += uint64_t{step.outputs[0].bytes} + kAlignment;
  // The sum may exceed a 32-bit address space.
  if (total > std::numeric_limits<size_t>::max() / 2 || !weights->Reserve(static_cast<size_t>(total))) {
    context->ReportError(context, "litebnn: out of memory for weights. ");
    return false;
  }
  std::byte* values = weights->data();
  for (Step& step : unpacking_) {
    TfLiteTensor& tensor = context->tensors[step.outputs[0].tensor];
    tensor.allocation_type = kTfLiteMmapRo;
    tensor.data = values;
    tensor.bytes = step.outputs[0].bytes;
    step.op->Run(pool, nullptr, &tensor.data, nullptr, 0);
    step.op = nullptr;
    values += AlignUp(tensor.bytes);
  }
  return true;
}

void Partition::ForgetWeights(TfLiteContext* context) {
  for (const Step& step : unpacking_) {
    TfLiteTensor& tensor = context->tensors[step.outputs[0].tensor];
    tensor.allocation_type = kTfLiteArenaRw;
    tensor.data = nullptr;
  }
}

void Partition::Describe(const NodeTypes& types, std::string* text) const {
  BeginElement(text);
  *text += "{\"steps\": [";
  DescribeSteps(unpacking_, types, text);
  DescribeSteps(steps_, types, text);
  *text += "]}";
}

bool Partition::Prepare(TfLiteContext* context, const Isa& isa, int num_threads, RepackBudget* budget, Arena* arena) {
  is_prepared_ = false;
  if (!PrepareSteps(context, isa, outputs_, budget, &steps_)) return false;
  tasks_ = OrderTasks(steps_);
  is_prepared_ = (PlanMemory(num_threads, tasks_, &steps_, &plan_) && arena->Reserve(plan_.arena_bytes)) ||
                 ReportOutOfMemory(context);
  return is_prepared_;
}

bool Partition::Run(TfLiteContext* context, ThreadPool& pool, Arena& arena) {
  if (!is_prepared_) {
    context->ReportError(context,
                         "litebnn: expected tensors to be allocated before it runs, found that this has failed. ");
    return false;
  }
  // The size of the arena is checked, because partitions share it, and the Prepare of another partition may have failed
  // to enlarge it.
  if (arena.capacity() < plan_.arena_bytes) return ReportOutOfMemory(context);
  return RunTasks(context, pool, plan_, tasks_, arena, &steps_);
}

bool Partition::ReportOutOfMemory(TfLiteContext* context) const {
  context->ReportError(context, "litebnn: out of memory for %zu bytes of intermediate tensors. ", plan_.arena_bytes);
  return false;
}

}  // namespace litebnn
