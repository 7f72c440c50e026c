// Estimates the work of the nodes that the delegate leaves to the runtime.
#pragma once

#include <vector>

#include "tflite/runtime/execution_plan.h"

namespace litebnn {

// Estimates the cycles, on one core, of the nodes of `plan` that are not in `claimed`. Both lists are in execution
// order. Returns infinity if the work of such a node is unknown, because of its kind of op or its shapes.
double RemainingCycles(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                       const std::vector<int>& claimed);

}  // namespace litebnn
