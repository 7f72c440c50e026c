// Estimates the work that is left to the runtime.
#pragma once

#include <vector>

#include "tflite/runtime/execution_plan.h"

namespace litebnn {

// Estimated cycles, on one core, of the nodes of `plan` that are not in `claimed`, which has the same order. Infinity
// if there are unusual ops or unknown shapes.
double RemainingCycles(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                       const std::vector<int>& claimed);

}  // namespace litebnn
