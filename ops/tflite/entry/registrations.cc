// Registers the ops as custom operators, and provides the C interface to them.
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "kernels/kernels.h"
#include "litebnn/litebnn.h"
#include "tflite/entry/defaults.h"
#include "tflite/entry/interpreter_resources.h"
#include "tflite/entry/out_of_memory.h"
#include "tflite/ops/op_list.h"
#include "tflite/partition/partition.h"

#ifndef LITEBNN_VERSION
#error "LITEBNN_VERSION is not defined"
#endif

namespace litebnn {
namespace {

struct CustomNode {
  Partition partition;
  Arena arena;
  std::shared_ptr<ThreadPool> pool;
  std::shared_ptr<RepackBudget> budget;
};

void* InitNode(TfLiteContext*, const char*, size_t) { return new (std::nothrow) CustomNode; }

void FreeNode(TfLiteContext*, void* user_data) { delete static_cast<CustomNode*>(user_data); }

TfLiteStatus PrepareNode(TfLiteContext* context, TfLiteNode* node, const OpType& type) {
  auto* custom = static_cast<CustomNode*>(node->user_data);
  if (custom == nullptr) {
    context->ReportError(context, "litebnn: %s: out of memory. ", type.name);
    return kTfLiteError;
  }
  std::string problem;
  const Isa* isa = DefaultIsa(&problem);
  if (isa == nullptr) {
    context->ReportError(context, "litebnn: %s: %s. ", type.name, problem.c_str());
    return kTfLiteError;
  }
  custom->pool = ThreadPoolOfInterpreter(context, RecommendedThreads(*context));
  if (custom->pool == nullptr) {
    context->ReportError(context, "litebnn: could not start %d threads. ", RecommendedThreads(*context));
    return kTfLiteError;
  }
  if (custom->partition.size() == 0) {
    custom->budget = BudgetOfInterpreter(context);
    Partition partition;
    if (!partition.AddNode(context, type, Node::kUnknownIndex, *node)) return kTfLiteError;
    partition.SetOutputs(*node->outputs);
    custom->partition = std::move(partition);
  }
  const int num_threads = custom->pool->num_threads();
  const bool prepared = custom->partition.Prepare(context, *isa, num_threads, custom->budget.get(), &custom->arena);
  return prepared ? kTfLiteOk : kTfLiteError;
}

TfLiteStatus InvokeNode(TfLiteContext* context, TfLiteNode* node) {
  auto* custom = static_cast<CustomNode*>(node->user_data);
  return ReportOutOfMemory(
      context, [=] { return custom->partition.Run(context, *custom->pool, custom->arena) ? kTfLiteOk : kTfLiteError; });
}

constexpr size_t kOpTypeCount = std::size(kOpTypes);

// Each op has its own prepare function, because the runtime does not pass the registration to prepare functions.
template <size_t position>
TfLiteStatus PrepareNodeOf(TfLiteContext* context, TfLiteNode* node) {
  return ReportOutOfMemory(context, [=] { return PrepareNode(context, node, *kOpTypes[position]); });
}

// A TfLiteRegistration for each custom op in kOpTypes.
struct CustomOps {
  TfLiteRegistration registrations[kOpTypeCount];
  LitebnnOp ops[kOpTypeCount];
  size_t count = 0;

  template <size_t... positions>
  explicit CustomOps(std::index_sequence<positions...>) {
    (Add(*kOpTypes[positions], PrepareNodeOf<positions>), ...);
  }

  void Add(const OpType& type, TfLiteStatus (*prepare)(TfLiteContext*, TfLiteNode*)) {
    if (!type.IsCustom()) return;
    registrations[count] = {InitNode, FreeNode, prepare, InvokeNode, nullptr, type.builtin_code, type.name, 1, {}};
    // The public header only names TfLiteRegistration. The library has its own declaration of this structure, so the
    // pointer is cast to the header's type.
    ops[count] = {type.name, reinterpret_cast<const struct ::TfLiteRegistration*>(&registrations[count])};
    ++count;
  }
};

}  // namespace
}  // namespace litebnn

const char* litebnn_version(void) { return LITEBNN_VERSION; }

const LitebnnOp* litebnn_ops(size_t* count) {
  static const litebnn::CustomOps custom_ops(std::make_index_sequence<litebnn::kOpTypeCount>{});
  if (count != nullptr) *count = custom_ops.count;
  return custom_ops.ops;
}

const struct TfLiteRegistration* litebnn_registration(const char* op_name) {
  size_t count = 0;
  const LitebnnOp* ops = litebnn_ops(&count);
  for (size_t i = 0; op_name != nullptr && i < count; ++i) {
    if (std::strcmp(op_name, ops[i].name) == 0) return ops[i].registration;
  }
  return nullptr;
}
