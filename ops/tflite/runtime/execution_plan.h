// The file declares functions that read a model's nodes in the order of execution, and replace nodes by those of a
// delegate. Another function finds the uses of the nodes' tensors.
#pragma once

#include <cstddef>
#include <vector>

#include "tflite/runtime/abi.h"

namespace litebnn {

struct PlannedNode {
  int index;
  const TfLiteNode* node;
  const TfLiteRegistration* registration;

  // The name of the node's op for messages. A builtin op is called "a builtin op", because a registration contains only
  // the names of custom ops.
  const char* OpName() const;
};

// ReadNode and ReadExecutionPlan return false after the runtime has reported an error.
bool ReadNode(TfLiteContext* context, int index, PlannedNode* node);
bool ReadExecutionPlan(TfLiteContext* context, std::vector<PlannedNode>* plan);

// Calls visit(value) for the entry in `values` of each of a node's tensors. Tensors without an entry are left out; a
// damaged model may have such tensors.
template <typename Value, typename Visit>
void VisitEach(const TfLiteIntArray& tensors, std::vector<Value>* values, Visit visit) {
  for (int i = 0; i < tensors.size; ++i) {
    const auto tensor = static_cast<size_t>(tensors.data[i]);
    if (tensor < values->size()) visit((*values)[tensor]);
  }
}

// The number of times that nodes read a tensor, and the last node in the plan that reads it.
struct TensorUse {
  size_t reads = 0, reader = 0;
};
std::vector<TensorUse> FindUses(const TfLiteContext& context, const std::vector<PlannedNode>& plan);

// Makes the runtime replace the nodes whose indices are in `sets` by nodes that run `kernel`. The runtime makes one
// such node for all nodes of a set, or several if other nodes have to run between them. The function passes the sets to
// the runtime one by one, in their order. On 32-bit machines, it reports an error if `plan` does not show the size of
// the runtime's TfLiteRegistration.
TfLiteStatus ReplaceNodes(TfLiteContext* context, const std::vector<PlannedNode>& plan,
                          const std::vector<std::vector<int>>& sets, const TfLiteRegistration& kernel,
                          TfLiteDelegate* delegate);

}  // namespace litebnn
