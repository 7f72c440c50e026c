// Which nodes of a model the delegate takes.
#pragma once

#include <vector>

#include "tflite/runtime/execution_plan.h"

namespace litebnn {

// The indices of the custom ops in `plan`, and of those of the runtime's own ops that read what a node before them in
// the list writes and are better run along with it.
std::vector<int> ClaimNodes(const TfLiteContext& context, const std::vector<PlannedNode>& plan);

// Reports a node that reads what it or a later one writes. Runtimes take such a model, and those up to 2.14 crash when
// they look for partitions in it.
bool CheckOrder(TfLiteContext* context, const std::vector<PlannedNode>& plan);

}  // namespace litebnn
