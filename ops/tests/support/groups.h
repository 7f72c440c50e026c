// How a runtime groups the nodes of its plan when a delegate takes some of them.
#pragma once

#include <cstddef>
#include <vector>

namespace litebnn::testing {

struct GroupedNode {
  std::vector<int> inputs, outputs;
  bool is_claimed;
};

// The groups, by the places of their nodes in `nodes`, in the order in which the runtime puts them. It goes through all
// nodes, time and again, takes those that are ready and claimed as the first that it took is or is not, and begins
// another group where there is none left. None of `nodes` reads what itself or a later one writes.
std::vector<std::vector<size_t>> GroupNodes(const std::vector<GroupedNode>& nodes);

}  // namespace litebnn::testing
