#include "tflite/partition/partition.h"

#include <algorithm>
#include <cstdint>
#include <limits>
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
  step.nodes = {{index, &type}};
  steps_.push_back(std::move(step));
  return true;
}

bool Partition::AddNodes(TfLiteContext* context, const TfLiteIntArray& indices, const NodeTypes& types) {
  for (int i = 0; i < indices.size; ++i) {
    PlannedNode planned;
    if (!ReadNode(context, indices.data[i], &planned)) return false;
    const auto type = types.find(planned.index);
    if (type == types.end()) {
      context->ReportError(context,
                           "litebnn: %s, node %d: expected an op that the delegate has claimed, found that the runtime "
                           "gives it another. ",
                           planned.OpName(), planned.index);
      return false;
    }
    if (!AddNode(context, *type->second, planned.index, *planned.node)) return false;
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

std::string Partition::Describe() const {
  const std::string unpacking = DescribeSteps(unpacking_), running = DescribeSteps(steps_);
  if (unpacking_.empty() || steps_.empty()) return unpacking_.empty() ? running : unpacking;
  return unpacking.substr(0, unpacking.size() - 1) + ", " + running.substr(1);
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
