// Delays claimed nodes that run better in a later partition than in the first possible one.
#pragma once

#include <vector>

#include "tflite/runtime/execution_plan.h"

namespace litebnn {

// Splits `claimed`, the nodes that the delegate claims, in the order of `plan`. The result has the sets of nodes that
// are passed to the runtime one after the other. CheckOrder must have accepted the plan.
//
// The runtime groups claimed nodes into partitions. Each node is in the first partition in which its inputs are
// available. Therefore a convolution and the ADD that reads it are in different partitions if the ADD also waits for a
// node that is not claimed. The convolution then writes floats for a later partition.
//
// To delay a convolution until its ADD can run, the claimed nodes are passed to the runtime in two sets. No partition
// has nodes of both sets. The convolution and its ADD are in one set, and the nodes of the partition before the ADD are
// in the other set. The convolution then runs in the partition of its ADD, and may be fused with it. The partition
// before writes only the convolution's input of packed signs. If no convolution needs a delay, there is only one set.
std::vector<std::vector<int>> DelayNodes(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                                         const std::vector<int>& claimed);

}  // namespace litebnn
