// Which nodes of a model the delegate takes.
#pragma once

#include <vector>

#include "tflite/runtime/execution_plan.h"

namespace litebnn {

// The indices of the custom ops in `plan`, and of those of the runtime's own ops that read what a node before them in
// the list writes and are better run along with it.
std::vector<int> ClaimNodes(const TfLiteContext& context, const std::vector<PlannedNode>& plan);

// Reports a node that reads what it or a later one writes, or that writes what one before it does. Runtimes take such a
// model. Those up to 2.14 crash when they look for partitions in the former; of the latter, all may put what reads a
// tensor behind its second writer or before it, once a delegate has taken nodes.
bool CheckOrder(TfLiteContext* context, const std::vector<PlannedNode>& plan);

}  // namespace litebnn
