// The ops as custom operators of their own, and the C interface to them.
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "litebnn/litebnn.h"
#include "tflite/entry/delegate.h"
#include "tflite/entry/pool_registry.h"
#include "tflite/ops/contract.h"
#include "tflite/ops/op.h"
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
  custom->pool = PoolOfInterpreter(context, RecommendedThreads(*context));
  if (custom->pool == nullptr) {
    context->ReportError(context, "litebnn: could not start %d threads. ", RecommendedThreads(*context));
    return kTfLiteError;
  }
  if (custom->partition.size() == 0) {
    custom->partition.AddNode(type, Node::kUnknownIndex, *node);
    custom->partition.SetOutputs(*node->outputs);
  }
  const bool prepared = custom->partition.Prepare(context, *isa, custom->pool->num_threads(), &custom->arena);
  return prepared ? kTfLiteOk : kTfLiteError;
}

TfLiteStatus InvokeNode(TfLiteContext* context, TfLiteNode* node) {
  auto* custom = static_cast<CustomNode*>(node->user_data);
  return custom->partition.Run(context, *custom->pool, custom->arena) ? kTfLiteOk : kTfLiteError;
}

// The runtime hands a node's registration to none of its functions, so each op has a prepare function of its own.
template <const OpType& type>
constexpr TfLiteRegistration MakeRegistration(const char* name) {
  TfLiteRegistration registration = {};
  registration.init = InitNode;
  registration.free = FreeNode;
  registration.prepare = [](TfLiteContext* context, TfLiteNode* node) { return PrepareNode(context, node, type); };
  registration.invoke = InvokeNode;
  registration.builtin_code = kTfLiteBuiltinCustom;
  registration.custom_name = name;
  registration.version = 1;
  return registration;
}

constexpr TfLiteRegistration kRegistrations[] = {
    MakeRegistration<kQuantizeOp>(contract::kQuantize),
    MakeRegistration<kDequantizeOp>(contract::kDequantize),
    MakeRegistration<kBMaxPool2dOp>(contract::kBMaxPool2d),
    MakeRegistration<kBconv2dOp>(contract::kBconv2d),
};
constexpr size_t kCount = sizeof(kRegistrations) / sizeof(kRegistrations[0]);

// The runtime's structures are incomplete in the public header and the library's own inside.
LitebnnOp PublicOp(const TfLiteRegistration& registration) {
  return {registration.custom_name, reinterpret_cast<const struct ::TfLiteRegistration*>(&registration)};
}

}  // namespace
}  // namespace litebnn

const char* litebnn_version(void) { return LITEBNN_VERSION; }

const LitebnnOp* litebnn_ops(size_t* count) {
  using litebnn::kRegistrations;
  using litebnn::PublicOp;
  static const LitebnnOp ops[litebnn::kCount] = {PublicOp(kRegistrations[0]), PublicOp(kRegistrations[1]),
                                                 PublicOp(kRegistrations[2]), PublicOp(kRegistrations[3])};
  if (count != nullptr) *count = litebnn::kCount;
  return ops;
}

const struct TfLiteRegistration* litebnn_registration(const char* op_name) {
  size_t count = 0;
  const LitebnnOp* ops = litebnn_ops(&count);
  for (size_t i = 0; op_name != nullptr && i < count; ++i) {
    if (std::strcmp(op_name, ops[i].name) == 0) return ops[i].registration;
  }
  return nullptr;
}
