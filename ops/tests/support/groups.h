// Groups nodes as a runtime does. When a delegate claims some nodes, the runtime splits its plan into groups of claimed
// and of other nodes.
#pragma once

#include <cstddef>
#include <vector>

namespace litebnn::testing {

struct GroupedNode {
  std::vector<int> inputs, outputs;
  bool is_claimed;
};

// Returns the groups as indices into `nodes`, in the runtime's order. The runtime repeatedly scans all nodes, and takes
// those that are ready and of the same kind (claimed or not) as the group's first node. If none is left, it begins a
// new group. No node may read an output of its own or of a later node.
std::vector<std::vector<size_t>> GroupNodes(const std::vector<GroupedNode>& nodes);

}  // namespace litebnn::testing
