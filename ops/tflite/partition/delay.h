// When the nodes that the delegate takes run: some are better run later than the runtime would.
#pragma once

#include <vector>

#include "tflite/runtime/execution_plan.h"

namespace litebnn {

// The nodes of `claimed`, which are in the order of `plan`, in the sets in which the runtime is to be given them, one
// set after the other. CheckOrder has found nothing in the plan.
//
// Of the nodes that it is given together the runtime makes partitions, and puts each node into the first where all is
// there that it reads. So a convolution of which only an ADD reads, while that waits for an op of the runtime's own,
// writes its floats for a later partition. Nodes that were given, or will be, with another set hold a node back as the
// runtime's own do. So each such node is given with its reader, and the partitions between with the other set: there it
// reads packed signs, and may be fused with its reader. Where there is no such node, all are one set.
std::vector<std::vector<int>> DelayNodes(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                                         const std::vector<int>& claimed);

}  // namespace litebnn
