// What the runtime has to do besides the nodes that the delegate takes.
#pragma once

#include <vector>

#include "tflite/runtime/execution_plan.h"

namespace litebnn {

// What the nodes of `plan` that are not `claimed`, which are in its order, take about, in cycles of one core; infinity
// where that cannot be told, as for other ops than those of ordinary networks, and where the size of a tensor is not
// known yet.
double LeftCycles(const TfLiteContext& context, const std::vector<PlannedNode>& plan, const std::vector<int>& claimed);

}  // namespace litebnn
