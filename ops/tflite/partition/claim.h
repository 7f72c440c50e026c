// The choice of nodes that the delegate claims.
#pragma once

#include <vector>

#include "tflite/runtime/execution_plan.h"

namespace litebnn {

// Returns the indices of the nodes in `plan` that litebnn runs: custom ops, and builtin ops that are faster in litebnn.
// Most builtin ops are faster only next to custom ops.
std::vector<int> ClaimNodes(const TfLiteContext& context, const std::vector<PlannedNode>& plan);

// Reports a node that reads a tensor before it is written, or that writes a tensor a second time. Runtimes accept such
// models. If a tensor is read before it is written, runtimes up to 2.14 crash while they look for partitions. If a
// tensor is written twice, any runtime may move a reader past the second writer once a delegate has claimed nodes.
bool CheckOrder(TfLiteContext* context, const std::vector<PlannedNode>& plan);

}  // namespace litebnn
