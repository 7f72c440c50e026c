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

  // The name of the node's op for messages. The name of a builtin op is not known here.
  const char* OpName() const;
};

// ReadNode and ReadExecutionPlan return false after the runtime has reported an error.
bool ReadNode(TfLiteContext* context, int index, PlannedNode* node);
bool ReadExecutionPlan(TfLiteContext* context, std::vector<PlannedNode>* plan);

// Makes the runtime replace the nodes with these indices by instances of `kernel`. Nodes of a set share an instance
// unless another node has to run between them. The sets are passed one after the other. Reports an error if the plan
// does not reveal the version of a 32-bit runtime.
TfLiteStatus ReplaceNodes(TfLiteContext* context, const std::vector<PlannedNode>& plan,
                          const std::vector<std::vector<int>>& sets, const TfLiteRegistration& kernel,
                          TfLiteDelegate* delegate);

}  // namespace litebnn
