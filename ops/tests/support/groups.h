// The way a runtime groups the nodes of its plan when a delegate claims some.
#pragma once

#include <cstddef>
#include <vector>

namespace litebnn::testing {

struct GroupedNode {
  std::vector<int> inputs, outputs;
  bool is_claimed;
};

// The groups as indices into `nodes`, in the runtime's order. The runtime repeatedly scans all nodes and takes those
// that are ready and of the same kind (claimed or not) as the group's first one. If none is left, it begins a new
// group. No node may read what itself or a later node writes.
std::vector<std::vector<size_t>> GroupNodes(const std::vector<GroupedNode>& nodes);

}  // namespace litebnn::testing
