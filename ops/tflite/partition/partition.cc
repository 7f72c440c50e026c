#include "tflite/partition/partition.h"

#include <algorithm>

#include "tflite/ops/op_list.h"

namespace litebnn {
namespace {

std::vector<Binding> Bindings(const TfLiteIntArray* tensors) {
  std::vector<Binding> bindings;
  for (int i = 0; tensors != nullptr && i < tensors->size; ++i) bindings.push_back({tensors->data[i]});
  return bindings;
}

}  // namespace

void Partition::AddNode(const OpType& type, int index, const TfLiteNode& node) {
  steps_.push_back({&type, index, Bindings(node.inputs), Bindings(node.outputs),
                    static_cast<const uint8_t*>(node.custom_initial_data),
                    static_cast<size_t>(std::max(node.custom_initial_data_size, 0)), node.builtin_data});
}

bool Partition::AddNodes(TfLiteContext* context, const TfLiteIntArray& indices) {
  for (int i = 0; i < indices.size; ++i) {
    PlannedNode planned;
    if (!ReadNode(context, indices.data[i], &planned)) return false;
    const OpType* type = FindOpType(*context, planned);
    if (type == nullptr) {
      context->ReportError(context,
                           "litebnn: %s, node %d: expected an op that the delegate has claimed, found that the runtime "
                           "gives it another. ",
                           planned.OpName(), planned.index);
      return false;
    }
    AddNode(*type, planned.index, *planned.node);
  }
  return true;
}

void Partition::SetOutputs(const TfLiteIntArray& tensors) {
  outputs_.insert(tensors.data, tensors.data + tensors.size);
  FuseAdditions(outputs_, &steps_);
  FuseBatchNorms(outputs_, &steps_);
}

bool Partition::Prepare(TfLiteContext* context, const Isa& isa, int num_threads, Arena* arena) {
  if (!PrepareSteps(context, isa, outputs_, &steps_)) return false;
  return (PlanMemory(num_threads, &steps_, &plan_) && arena->Reserve(plan_.arena_bytes)) || ReportOutOfMemory(context);
}

bool Partition::Run(TfLiteContext* context, ThreadPool& pool, Arena& arena) {
  // Another one's Prepare may have tried to enlarge it in vain.
  if (arena.capacity() < plan_.arena_bytes) return ReportOutOfMemory(context);
  return RunSteps(context, pool, plan_, arena, &steps_);
}

bool Partition::ReportOutOfMemory(TfLiteContext* context) const {
  context->ReportError(context, "litebnn: out of memory for %zu bytes of intermediate tensors. ", plan_.arena_bytes);
  return false;
}

}  // namespace litebnn
