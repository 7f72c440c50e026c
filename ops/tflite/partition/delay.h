// Delays claimed nodes for which a later partition is better than the first possible one.
#pragma once

#include <vector>

#include "tflite/runtime/execution_plan.h"

namespace litebnn {

// Splits `claimed`, which is in the order of `plan`, into the sets that are passed to the runtime one after the other.
// CheckOrder must have accepted the plan.
//
// The runtime makes partitions of the nodes that are passed to it together. Each node is in the first partition in
// which its inputs are available. A convolution whose only consumer is an ADD that waits for a builtin op therefore
// writes floats for a later partition.
//
// A node waits for nodes of another set as it waits for the runtime's own. So such a convolution is passed together
// with its consumer, and the partitions between them are in the other set. The convolution then reads packed signs
// later, and may be fused with its consumer. Without such convolutions there is only one set.
std::vector<std::vector<int>> DelayNodes(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                                         const std::vector<int>& claimed);

}  // namespace litebnn
