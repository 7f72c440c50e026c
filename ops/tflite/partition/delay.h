// Delays claimed nodes that run better in a later partition than in the first possible one.
#pragma once

#include <vector>

#include "tflite/runtime/execution_plan.h"

namespace litebnn {

// Splits `claimed`, which is in the order of `plan`, into the sets that are passed to the runtime one after the other.
// CheckOrder must have accepted the plan.
//
// The runtime groups claimed nodes into partitions. Each node is in the first partition in which its inputs are
// available. Some convolutions are read only by an ADD that waits for a builtin op. Such a convolution would write
// floats for a later partition.
//
// Nodes can be passed to the runtime in two sets. A node waits for nodes of the other set, as it waits for the
// runtime's own. So such a convolution is passed together with its consumer, and the partitions between them are in the
// other set. The convolution then reads packed signs later, and may be fused with its consumer. Without such
// convolutions there is only one set.
std::vector<std::vector<int>> DelayNodes(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                                         const std::vector<int>& claimed);

}  // namespace litebnn
