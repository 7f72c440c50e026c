#include "tflite/entry/delegate.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <unordered_set>
#include <vector>

#include "tflite/ops/add.h"
#include "tflite/ops/max_pool2d.h"
#include "tflite/ops/op.h"
#include "tflite/partition/partition.h"

namespace litebnn {
namespace {

// The op for one of the runtime's own nodes that may be claimed with binary ones, null for any other.
const OpType* FindBuiltin(const TfLiteContext& context, const TfLiteRegistration& registration,
                          const TfLiteNode& node) {
  const OpType* type = FindAddition(context, registration, node);
  return type != nullptr ? type : FindMaxPool2d(context, registration, node);
}

// One partition as a node of the runtime.
struct DelegateKernel {
  Delegate* delegate;
  Partition partition;
};

void* InitKernel(TfLiteContext* context, const char* buffer, size_t /*length*/) {
  // For a delegate's kernel the runtime passes this structure instead of options.
  const auto* params = reinterpret_cast<const TfLiteDelegateParams*>(buffer);
  std::unique_ptr<DelegateKernel> kernel(new (std::nothrow) DelegateKernel{Delegate::FromC(params->delegate), {}});
  if (kernel == nullptr) return nullptr;
  for (int i = 0; i < params->nodes_to_replace->size; ++i) {
    const int index = params->nodes_to_replace->data[i];
    TfLiteNode* node;
    TfLiteRegistration* registration;
    if (context->GetNodeAndRegistration(context, index, &node, &registration) != kTfLiteOk) return nullptr;
    const OpType* type = FindOpType(*registration);
    if (type == nullptr) type = FindBuiltin(*context, *registration, *node);
    if (type != nullptr) kernel->partition.AddNode(*type, index, *node);
  }
  kernel->partition.SetOutputs(*params->output_tensors);
  return kernel.release();
}

void FreeKernel(TfLiteContext*, void* user_data) { delete static_cast<DelegateKernel*>(user_data); }

TfLiteStatus PrepareKernel(TfLiteContext* context, TfLiteNode* node) {
  auto* kernel = static_cast<DelegateKernel*>(node->user_data);
  if (kernel == nullptr) {
    context->ReportError(context, "litebnn: the delegate could not be set up. ");
    return kTfLiteError;
  }
  const DelegateOptions& options = kernel->delegate->options();
  ThreadPool* pool = kernel->delegate->GetThreadPool(context);
  if (pool == nullptr) return kTfLiteError;
  {
    const std::lock_guard<std::mutex> lock(kernel->delegate->run_mutex());
    Arena& arena = kernel->delegate->arena();
    if (!kernel->partition.Prepare(context, *options.isa, pool->num_threads(), &arena)) return kTfLiteError;
  }
  if (options.verbose) {
    const Partition::MemoryUse use = kernel->partition.memory_use();
    std::fprintf(stderr,
                 "litebnn: partition of %zu nodes, ISA %s, %d threads: arena of %zu bytes (%zu without reuse), %zu "
                 "bytes of repacked weights\n",
                 kernel->partition.size(), IsaName(*options.isa), pool->num_threads(), use.arena_bytes,
                 use.unshared_bytes, use.owned_bytes);
  }
  return kTfLiteOk;
}

TfLiteStatus InvokeKernel(TfLiteContext* context, TfLiteNode* node) {
  auto* kernel = static_cast<DelegateKernel*>(node->user_data);
  ThreadPool* pool = kernel->delegate->GetThreadPool(context);
  if (pool == nullptr) return kTfLiteError;
  const std::lock_guard<std::mutex> lock(kernel->delegate->run_mutex());
  return kernel->partition.Run(context, *pool, kernel->delegate->arena()) ? kTfLiteOk : kTfLiteError;
}

struct PlannedNode {
  int index;
  const TfLiteNode* node;
  const TfLiteRegistration* registration;
};

bool ReadPlan(TfLiteContext* context, std::vector<PlannedNode>* plan) {
  TfLiteIntArray* indices;
  if (context->GetExecutionPlan(context, &indices) != kTfLiteOk) return false;
  for (int i = 0; i < indices->size; ++i) {
    TfLiteNode* node;
    TfLiteRegistration* registration;
    if (context->GetNodeAndRegistration(context, indices->data[i], &node, &registration) != kTfLiteOk) return false;
    plan->push_back({indices->data[i], node, registration});
  }
  return true;
}

// Reports a node that reads what it or a later one writes. Runtimes take such a model, and those up to 2.14 crash when
// they look for partitions in it.
bool CheckOrder(TfLiteContext* context, const std::vector<PlannedNode>& plan) {
  std::unordered_set<int> to_come;
  for (const PlannedNode& planned : plan) {
    const TfLiteIntArray& outputs = *planned.node->outputs;
    to_come.insert(outputs.data, outputs.data + outputs.size);
  }
  for (const PlannedNode& planned : plan) {
    const TfLiteIntArray &inputs = *planned.node->inputs, &outputs = *planned.node->outputs;
    for (int i = 0; i < inputs.size; ++i) {
      const int tensor = inputs.data[i];
      if (tensor == kOptionalTensor || to_come.count(tensor) == 0) continue;
      const char* op = planned.registration->custom_name;
      context->ReportError(context,
                           "litebnn: %s, node %d: input %d (tensor %d): expected a node before this one to write it, "
                           "found this or a later one. ",
                           op == nullptr ? "a builtin op" : op, planned.index, i, tensor);
      return false;
    }
    for (int i = 0; i < outputs.size; ++i) to_come.erase(outputs.data[i]);
  }
  return true;
}

// Calls the runtime with the first bytes of `kernel` as an `Argument`.
template <typename Argument>
TfLiteStatus ReplaceNodesWith(TfLiteContext* context, const TfLiteRegistration& kernel, const TfLiteIntArray* nodes,
                              TfLiteDelegate* delegate) {
  static_assert(sizeof(Argument) <= sizeof(TfLiteRegistration));
  Argument argument;
  std::memcpy(&argument, &kernel, sizeof(argument));
  using Replace = TfLiteStatus (*)(TfLiteContext*, Argument, const TfLiteIntArray*, TfLiteDelegate*);
  // By way of the type that compilers let any function have.
  const auto replace = reinterpret_cast<void (*)()>(context->ReplaceNodeSubsetsWithDelegateKernels);
  return reinterpret_cast<Replace>(replace)(context, argument, nodes, delegate);
}

template <size_t kMembers>
struct OldRegistration {
  void* members[kMembers];
};

// What a TfLiteRegistration takes in this runtime, which keeps an array of nodes, each with its registration behind it.
// 0 where the plan does not tell.
size_t RegistrationSize(const std::vector<PlannedNode>& plan) {
  if (plan.size() < 2 || plan[1].index != plan[0].index + 1) return 0;
  return reinterpret_cast<uintptr_t>(plan[1].node) - reinterpret_cast<uintptr_t>(plan[0].registration);
}

TfLiteStatus ReplaceNodes(TfLiteContext* context, const std::vector<PlannedNode>& plan,
                          const TfLiteRegistration& kernel, const TfLiteIntArray* nodes, TfLiteDelegate* delegate) {
  if (kPointer == 8) return ReplaceNodesWith<TfLiteRegistrationArgument>(context, kernel, nodes, delegate);
  switch (RegistrationSize(plan)) {
    case sizeof(OldRegistration<8>):
      return ReplaceNodesWith<OldRegistration<8>>(context, kernel, nodes, delegate);
    case sizeof(OldRegistration<9>):
      return ReplaceNodesWith<OldRegistration<9>>(context, kernel, nodes, delegate);
    case sizeof(OldRegistration<10>):
      return ReplaceNodesWith<OldRegistration<10>>(context, kernel, nodes, delegate);
    case sizeof(TfLiteRegistrationArgument):
      return ReplaceNodesWith<TfLiteRegistrationArgument>(context, kernel, nodes, delegate);
    default:
      context->ReportError(context,
                           "litebnn: the delegate cannot tell the version of this 32-bit runtime from a model of %zu "
                           "nodes: register the ops instead. ",
                           plan.size());
      return kTfLiteError;
  }
}

TfLiteStatus PrepareDelegate(TfLiteContext* context, TfLiteDelegate* delegate) {
  std::vector<PlannedNode> plan;
  if (!ReadPlan(context, &plan)) return kTfLiteError;
  // In the form of a TfLiteIntArray: the length first.
  std::vector<int> claimed = {0};
  std::unordered_set<int> convolved, written;
  for (const PlannedNode& planned : plan) {
    const TfLiteIntArray &inputs = *planned.node->inputs, &outputs = *planned.node->outputs;
    const auto reads_any = [&inputs](const std::unordered_set<int>& tensors) {
      return std::any_of(inputs.data, inputs.data + inputs.size,
                         [&](int tensor) { return tensors.count(tensor) != 0; });
    };
    const OpType* type = FindOpType(*planned.registration);
    if (type == nullptr) {
      type = FindBuiltin(*context, *planned.registration, *planned.node);
      if (type != nullptr && !reads_any(type == &kMaxPool2dOp ? written : convolved)) type = nullptr;
    }
    if (type == nullptr) continue;
    claimed.push_back(planned.index);
    written.insert(outputs.data, outputs.data + outputs.size);
    if (type == &kBconv2dOp) convolved.insert(outputs.data, outputs.data + outputs.size);
  }
  claimed[0] = static_cast<int>(claimed.size()) - 1;
  if (Delegate::FromC(delegate)->options().verbose) {
    std::fprintf(stderr, "litebnn: the delegate takes %d of %zu nodes\n", claimed[0], plan.size());
  }
  if (claimed[0] == 0) return kTfLiteOk;
  if (!CheckOrder(context, plan)) return kTfLiteError;

  TfLiteRegistration kernel = {};
  kernel.init = InitKernel;
  kernel.free = FreeKernel;
  kernel.prepare = PrepareKernel;
  kernel.invoke = InvokeKernel;
  kernel.custom_name = "LitebnnDelegate";
  kernel.version = 1;
  const auto* nodes = reinterpret_cast<const TfLiteIntArray*>(claimed.data());
  return ReplaceNodes(context, plan, kernel, nodes, delegate);
}

}  // namespace

int RecommendedThreads(const TfLiteContext& context) {
  return std::clamp(context.recommended_num_threads, 1, kMaxThreads);
}

Delegate::Delegate(const DelegateOptions& options) : options_(options) {
  c_delegate_.data_ = this;
  c_delegate_.Prepare = PrepareDelegate;
  c_delegate_.flags = kTfLiteDelegateFlagsAllowDynamicTensors;
}

ThreadPool* Delegate::GetThreadPool(TfLiteContext* context) {
  const std::lock_guard<std::mutex> lock(pool_mutex_);
  if (pool_ == nullptr) {
    const int num_threads = options_.num_threads.value_or(RecommendedThreads(*context));
    pool_ = ThreadPool::Create(num_threads);
    if (pool_ == nullptr) context->ReportError(context, "litebnn: could not start %d threads. ", num_threads);
  }
  return pool_.get();
}

}  // namespace litebnn
