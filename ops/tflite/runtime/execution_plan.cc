#include "tflite/runtime/execution_plan.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace litebnn {
namespace {

using NodeSets = std::vector<std::vector<int>>;

// Asks the runtime to replace the nodes in `sets` by nodes with the delegate's `kernel`. `Argument` is the runtime's
// version of TfLiteRegistration, which the runtime takes by value. The first bytes of `kernel` are copied into it.
template <typename Argument>
TfLiteStatus ReplaceNodesWith(TfLiteContext* context, const TfLiteRegistration& kernel, const NodeSets& sets,
                              TfLiteDelegate* delegate) {
  static_assert(sizeof(Argument) <= sizeof(TfLiteRegistration));
  Argument argument;
  std::memcpy(&argument, &kernel, sizeof(argument));
  using Replace = TfLiteStatus (*)(TfLiteContext*, Argument, const TfLiteIntArray*, TfLiteDelegate*);
  // The pointer is first cast to void (*)(). Compilers allow casts to and from this type without a warning.
  const auto replace = reinterpret_cast<void (*)()>(context->ReplaceNodeSubsetsWithDelegateKernels);
  TfLiteStatus status = kTfLiteOk;
  for (auto set = sets.begin(); status == kTfLiteOk && set != sets.end(); ++set) {
    // The layout of a TfLiteIntArray is a length followed by values.
    std::vector<int> array = {static_cast<int>(set->size())};
    array.insert(array.end(), set->begin(), set->end());
    const auto* nodes = reinterpret_cast<const TfLiteIntArray*>(array.data());
    status = reinterpret_cast<Replace>(replace)(context, argument, nodes, delegate);
  }
  return status;
}

// A TfLiteRegistration of an older runtime, with kMembers members of pointer size.
template <size_t kMembers>
using OldRegistration = std::array<void*, kMembers>;

// The size of TfLiteRegistration in this runtime, which is read off the runtime's array of nodes and registrations. The
// result is 0 if the plan does not reveal the size.
size_t RegistrationSize(const std::vector<PlannedNode>& plan) {
  if (plan.size() < 2 || plan[1].index != plan[0].index + 1) return 0;
  return reinterpret_cast<uintptr_t>(plan[1].node) - reinterpret_cast<uintptr_t>(plan[0].registration);
}

}  // namespace

const char* PlannedNode::OpName() const {
  return registration->custom_name == nullptr ? "a builtin op" : registration->custom_name;
}

bool ReadNode(TfLiteContext* context, int index, PlannedNode* node) {
  TfLiteNode* found;
  TfLiteRegistration* registration;
  if (context->GetNodeAndRegistration(context, index, &found, &registration) != kTfLiteOk) return false;
  *node = {index, found, registration};
  return true;
}

bool ReadExecutionPlan(TfLiteContext* context, std::vector<PlannedNode>* plan) {
  TfLiteIntArray* indices;
  if (context->GetExecutionPlan(context, &indices) != kTfLiteOk) return false;
  plan->resize(static_cast<size_t>(indices->size));
  for (size_t i = 0; i < plan->size(); ++i) {
    if (!ReadNode(context, indices->data[i], &(*plan)[i])) return false;
  }
  return true;
}

std::vector<TensorUse> FindUses(const TfLiteContext& context, const std::vector<PlannedNode>& plan) {
  std::vector<TensorUse> uses(context.tensors_size);
  for (size_t i = 0; i < plan.size(); ++i) {
    VisitEach(*plan[i].node->inputs, &uses, [i](TensorUse& use) {
      ++use.reads;
      use.reader = i;
    });
  }
  return uses;
}

TfLiteStatus ReplaceNodes(TfLiteContext* context, const std::vector<PlannedNode>& plan, const NodeSets& sets,
                          const TfLiteRegistration& kernel, TfLiteDelegate* delegate) {
  if (kPointer == 8) return ReplaceNodesWith<TfLiteRegistrationArgument>(context, kernel, sets, delegate);
  switch (RegistrationSize(plan)) {
    case sizeof(OldRegistration<8>):
      return ReplaceNodesWith<OldRegistration<8>>(context, kernel, sets, delegate);
    case sizeof(OldRegistration<9>):
      return ReplaceNodesWith<OldRegistration<9>>(context, kernel, sets, delegate);
    case sizeof(OldRegistration<10>):
      return ReplaceNodesWith<OldRegistration<10>>(context, kernel, sets, delegate);
    case sizeof(TfLiteRegistrationArgument):
      return ReplaceNodesWith<TfLiteRegistrationArgument>(context, kernel, sets, delegate);
    default:
      context->ReportError(context,
                           "litebnn: the delegate cannot tell the version of this 32-bit runtime from a model of %zu "
                           "nodes: register the ops instead. ",
                           plan.size());
      return kTfLiteError;
  }
}

}  // namespace litebnn
