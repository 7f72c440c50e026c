// The file declares functions that read a model's nodes in the order of execution, and replace nodes by those of a
// delegate.
#pragma once

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

// Makes the runtime replace the nodes whose indices are in `sets` by nodes that run `kernel`. The runtime makes one
// such node for all nodes of a set, or several if other nodes have to run between them. The function passes the sets to
// the runtime one by one, in their order. On 32-bit machines, it reports an error if `plan` does not show the size of
// the runtime's TfLiteRegistration.
TfLiteStatus ReplaceNodes(TfLiteContext* context, const std::vector<PlannedNode>& plan,
                          const std::vector<std::vector<int>>& sets, const TfLiteRegistration& kernel,
                          TfLiteDelegate* delegate);

}  // namespace litebnn
