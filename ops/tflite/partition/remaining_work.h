// Estimates the work of the nodes that the delegate leaves to the runtime.
#pragma once

#include <vector>

#include "tflite/runtime/execution_plan.h"

namespace litebnn {

// Estimates the cycles, on one core, of the nodes of `plan` that are not in `claimed`, which has the same order.
// Returns infinity if there are unusual ops or unknown shapes.
double RemainingCycles(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                       const std::vector<int>& claimed);

}  // namespace litebnn
