#include "tflite/entry/delegate.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "tflite/entry/defaults.h"
#include "tflite/entry/interpreter_resources.h"
#include "tflite/entry/out_of_memory.h"
#include "tflite/partition/claim.h"
#include "tflite/partition/partition.h"

namespace litebnn {
namespace {

// A kernel of the delegate. In place of a group of claimed nodes, the runtime runs one node with this kernel, which
// runs a partition.
struct DelegateKernel {
  Delegate* delegate;
  Partition partition;
  std::shared_ptr<RepackBudget> budget;
  Arena weights;  // those that the partition has unpacked
};

DelegateKernel* CreateKernel(TfLiteContext* context, const TfLiteDelegateParams& params) {
  auto kernel = std::make_unique<DelegateKernel>();
  kernel->delegate = Delegate::FromC(params.delegate);
  // The runtime makes kernels while TakeNodes asks it to.
  DelegatedGraph* const graph = kernel->delegate->FindGraph(context);
  const NodeTypes none;
  if (!kernel->partition.AddNodes(context, *params.nodes_to_replace, graph == nullptr ? none : graph->types)) {
    return nullptr;
  }
  kernel->budget = BudgetOfInterpreter(context);
  ThreadPool* pool = kernel->delegate->GetThreadPool(context);
  const Isa& isa = *kernel->delegate->options().isa;
  if (pool == nullptr ||
      !kernel->partition.UnpackWeights(context, isa, *pool, kernel->budget.get(), &kernel->weights)) {
    return nullptr;
  }
  kernel->partition.SetOutputs(*params.output_tensors);
  if (graph != nullptr && kernel->delegate->options().describe) {
    kernel->partition.Describe(graph->types, &graph->text);
  }
  return kernel.release();
}

void* InitKernel(TfLiteContext* context, const char* buffer, size_t /*length*/) {
  // The parameters that the runtime passes to the init function of a delegate's kernel.
  const auto& params = *reinterpret_cast<const TfLiteDelegateParams*>(buffer);
  return CatchOutOfMemory([&] { return CreateKernel(context, params); }, [] { return nullptr; });
}

void FreeKernel(TfLiteContext* context, void* user_data) {
  const std::unique_ptr<DelegateKernel> kernel(static_cast<DelegateKernel*>(user_data));
  if (kernel != nullptr) kernel->partition.ForgetWeights(context);
}

TfLiteStatus PreparePartition(TfLiteContext* context, TfLiteNode* node) {
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
    RepackBudget* budget = kernel->budget.get();
    if (!kernel->partition.Prepare(context, *options.isa, pool->num_threads(), budget, &arena)) return kTfLiteError;
  }
  if (options.verbose) {
    const MemoryPlan& plan = kernel->partition.memory_plan();
    std::fprintf(stderr,
                 "litebnn: partition of %zu nodes, ISA %s, %d threads: arena of %zu bytes (%zu without reuse), %zu "
                 "bytes of repacked weights\n",
                 kernel->partition.size(), IsaName(*options.isa), pool->num_threads(), plan.arena_bytes,
                 plan.unshared_bytes, plan.owned_bytes);
  }
  return kTfLiteOk;
}

TfLiteStatus RunPartition(TfLiteContext* context, TfLiteNode* node) {
  auto* kernel = static_cast<DelegateKernel*>(node->user_data);
  ThreadPool* pool = kernel->delegate->GetThreadPool(context);
  if (pool == nullptr) return kTfLiteError;
  const std::lock_guard<std::mutex> lock(kernel->delegate->run_mutex());
  return kernel->partition.Run(context, *pool, kernel->delegate->arena()) ? kTfLiteOk : kTfLiteError;
}

TfLiteStatus PrepareKernel(TfLiteContext* context, TfLiteNode* node) {
  return ReportOutOfMemory(context, [=] { return PreparePartition(context, node); });
}

TfLiteStatus InvokeKernel(TfLiteContext* context, TfLiteNode* node) {
  return ReportOutOfMemory(context, [=] { return RunPartition(context, node); });
}

// Sets the runtime's number of threads to one, if the nodes that remain with the runtime are too little work for
// several threads. The new number also holds for XNNPACK, because XNNPACK claims its nodes after this delegate.
bool KeepSmallWorkOnTheCaller(TfLiteContext* context, const std::vector<PlannedNode>& plan,
                              const std::vector<Claim>& claims, Delegate* delegate) {
  if (context->recommended_num_threads <= 1 ||
      RemainingCycles(*context, plan, claims) >= kSharingLimits.least_loop_to_wake) {
    return true;
  }
  // The thread pool is created before the runtime's number of threads may be set to one, because the pool reads this
  // number.
  if (delegate->GetThreadPool(context) == nullptr) return false;
  context->recommended_num_threads = 1;
  return true;
}

TfLiteStatus TakeNodes(TfLiteContext* context, TfLiteDelegate* c_delegate) {
  std::vector<PlannedNode> plan;
  if (!ReadExecutionPlan(context, &plan)) return kTfLiteError;
  Delegate& delegate = *Delegate::FromC(c_delegate);
  const std::vector<Claim> claims = ClaimNodes(*context, plan);
  const auto claimed =
      std::count_if(claims.begin(), claims.end(), [](const Claim& claim) { return claim.is_claimed(); });
  if (delegate.options().verbose) {
    std::fprintf(stderr, "litebnn: the delegate takes %td of %zu nodes\n", claimed, plan.size());
  }
  const bool claims_any = claimed > 0;
  if (claims_any && (!CheckOrder(context, plan) || !KeepSmallWorkOnTheCaller(context, plan, claims, &delegate))) {
    return kTfLiteError;
  }
  const auto end = [&delegate](DelegatedGraph* graph) { delegate.EndGraph(graph); };
  const std::unique_ptr<DelegatedGraph, decltype(end)> graph(delegate.BeginGraph(context), end);
  int last = 0;
  for (const PlannedNode& planned : plan) last = std::max(last, planned.index);
  graph->types = NodeTypes(static_cast<size_t>(last) + 1);
  for (size_t i = 0; i < plan.size(); ++i) graph->types[static_cast<size_t>(plan[i].index)] = claims[i].type;
  if (delegate.options().describe) {
    graph->text = "{\"left\": [";
    DescribeLeft(plan, claims, &graph->text);
    graph->text += "], \"partitions\": [";
  }

  TfLiteRegistration kernel = {};
  kernel.init = InitKernel;
  kernel.free = FreeKernel;
  kernel.prepare = PrepareKernel;
  kernel.invoke = InvokeKernel;
  kernel.custom_name = "LitebnnDelegate";
  kernel.version = 1;
  return claims_any ? ReplaceNodes(context, plan, DelayNodes(*context, plan, claims), kernel, c_delegate) : kTfLiteOk;
}

TfLiteStatus PrepareDelegate(TfLiteContext* context, TfLiteDelegate* delegate) {
  return ReportOutOfMemory(context, [=] { return TakeNodes(context, delegate); });
}

}  // namespace

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

DelegatedGraph* Delegate::FindGraph(const TfLiteContext* context) {
  const std::lock_guard<std::mutex> lock(graphs_mutex_);
  const auto found = std::find_if(graphs_.begin(), graphs_.end(),
                                  [&](const DelegatedGraph& graph) { return graph.context == context; });
  return found == graphs_.end() ? nullptr : &*found;
}

DelegatedGraph* Delegate::BeginGraph(const TfLiteContext* context) {
  // A runtime may delegate a graph again, as after inputs are resized.
  DelegatedGraph* graph = FindGraph(context);
  if (graph == nullptr) {
    const std::lock_guard<std::mutex> lock(graphs_mutex_);
    graph = &graphs_.emplace_back();
    graph->context = context;
  }
  return graph;
}

void Delegate::EndGraph(const DelegatedGraph* graph) {
  if (options_.describe) return;
  const std::lock_guard<std::mutex> lock(graphs_mutex_);
  auto place = graphs_.begin();
  while (&*place != graph) ++place;
  graphs_.erase(place);
}

const char* Delegate::Describe() {
  if (!options_.describe) return nullptr;
  const std::lock_guard<std::mutex> lock(graphs_mutex_);
  description_ = "{\"graphs\": [";
  for (const DelegatedGraph& graph : graphs_) {
    if (graph.text.empty()) continue;  // memory ran out while it was delegated
    BeginElement(&description_);
    description_ += graph.text;
    description_ += "]}";
  }
  description_ += "]}";
  return description_.c_str();
}

}  // namespace litebnn
