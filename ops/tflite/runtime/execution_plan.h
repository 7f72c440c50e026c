// The model's nodes in the order in which the runtime runs them, and how a delegate takes the place of some.
#pragma once

#include <vector>

#include "tflite/runtime/abi.h"

namespace litebnn {

struct PlannedNode {
  int index;
  const TfLiteNode* node;
  const TfLiteRegistration* registration;

  // Its op's name in messages; a builtin op's is not known here.
  const char* OpName() const;
};

// Each returns false after the runtime has reported an error.
bool ReadNode(TfLiteContext* context, int index, PlannedNode* node);
bool ReadExecutionPlan(TfLiteContext* context, std::vector<PlannedNode>* plan);

// Has the runtime run `kernel` in place of the nodes of `plan` with these indices, one of it for each group of nodes of
// one set that no other node has to run between. It is given one set after the other. Reports where the plan does not
// tell the version of a 32-bit runtime.
TfLiteStatus ReplaceNodes(TfLiteContext* context, const std::vector<PlannedNode>& plan,
                          const std::vector<std::vector<int>>& sets, const TfLiteRegistration& kernel,
                          TfLiteDelegate* delegate);

}  // namespace litebnn
