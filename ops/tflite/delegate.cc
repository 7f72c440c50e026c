#include "tflite/delegate.h"

#include <algorithm>
#include <cstdio>
#include <new>
#include <vector>

#include "tflite/op.h"
#include "tflite/partition.h"

namespace litebnn {
namespace {

// One partition as a node of the runtime.
struct DelegateKernel {
  Delegate* delegate;
  Partition partition;
};

void* InitKernel(TfLiteContext* context, const char* buffer, size_t /*length*/) {
  // For a delegate's kernel the runtime passes this structure instead of options.
  const auto* params = reinterpret_cast<const TfLiteDelegateParams*>(buffer);
  auto* kernel = new (std::nothrow) DelegateKernel{Delegate::FromC(params->delegate), {}};
  if (kernel == nullptr) return nullptr;
  for (int i = 0; i < params->nodes_to_replace->size; ++i) {
    const int index = params->nodes_to_replace->data[i];
    TfLiteNode* node;
    TfLiteRegistration* registration;
    if (context->GetNodeAndRegistration(context, index, &node, &registration) != kTfLiteOk) continue;
    kernel->partition.AddNode(*FindOpType(*registration), index, *node);
  }
  kernel->partition.SetOutputs(*params->output_tensors);
  return kernel;
}

void FreeKernel(TfLiteContext*, void* user_data) { delete static_cast<DelegateKernel*>(user_data); }

TfLiteStatus PrepareKernel(TfLiteContext* context, TfLiteNode* node) {
  auto* kernel = static_cast<DelegateKernel*>(node->user_data);
  if (kernel == nullptr) {
    context->ReportError(context, "litebnn: out of memory");
    return kTfLiteError;
  }
  const DelegateOptions& options = kernel->delegate->options();
  ThreadPool* pool = kernel->delegate->GetThreadPool(context);
  if (pool == nullptr || !kernel->partition.Prepare(context, *options.kernels, pool->num_threads())) {
    return kTfLiteError;
  }
  if (options.verbose) {
    const Partition::MemoryUse use = kernel->partition.memory_use();
    std::fprintf(stderr,
                 "litebnn: partition of %zu nodes, %s kernels, %d threads: arena of %zu bytes (%zu without reuse), %zu "
                 "bytes of repacked weights\n",
                 kernel->partition.size(), KernelsName(*options.kernels), pool->num_threads(), use.arena_bytes,
                 use.unshared_bytes, use.owned_bytes);
  }
  return kTfLiteOk;
}

TfLiteStatus InvokeKernel(TfLiteContext* context, TfLiteNode* node) {
  auto* kernel = static_cast<DelegateKernel*>(node->user_data);
  ThreadPool* pool = kernel->delegate->GetThreadPool(context);
  if (pool == nullptr) return kTfLiteError;
  const std::lock_guard<std::mutex> lock(kernel->delegate->run_mutex());
  return kernel->partition.Run(context, *pool) ? kTfLiteOk : kTfLiteError;
}

TfLiteStatus PrepareDelegate(TfLiteContext* context, TfLiteDelegate* delegate) {
  TfLiteIntArray* plan;
  if (context->GetExecutionPlan(context, &plan) != kTfLiteOk) return kTfLiteError;
  // In the form of a TfLiteIntArray: the length first.
  std::vector<int> claimed = {0};
  for (int i = 0; i < plan->size; ++i) {
    TfLiteNode* node;
    TfLiteRegistration* registration;
    if (context->GetNodeAndRegistration(context, plan->data[i], &node, &registration) != kTfLiteOk) {
      return kTfLiteError;
    }
    if (FindOpType(*registration) != nullptr) claimed.push_back(plan->data[i]);
  }
  claimed[0] = static_cast<int>(claimed.size()) - 1;
  if (Delegate::FromC(delegate)->options().verbose) {
    std::fprintf(stderr, "litebnn: the delegate takes %d of %d nodes\n", claimed[0], plan->size);
  }
  if (claimed[0] == 0) return kTfLiteOk;

  TfLiteRegistration kernel = {};
  kernel.init = InitKernel;
  kernel.free = FreeKernel;
  kernel.prepare = PrepareKernel;
  kernel.invoke = InvokeKernel;
  kernel.custom_name = "LitebnnDelegate";
  kernel.version = 1;
  return context->ReplaceNodeSubsetsWithDelegateKernels(
      context, kernel, reinterpret_cast<const TfLiteIntArray*>(claimed.data()), delegate);
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
    if (pool_ == nullptr) context->ReportError(context, "litebnn: could not start %d threads", num_threads);
  }
  return pool_.get();
}

}  // namespace litebnn
