#include "tests/support/groups.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "tflite/runtime/abi.h"

namespace litebnn::testing {
namespace {

// Takes the next group of nodes, either all claimed by the delegate or none, out of `remaining`, and returns it.
// Removes the outputs of these nodes from `unwritten`.
std::vector<size_t> TakeGroup(const std::vector<GroupedNode>& nodes, std::vector<size_t>* remaining,
                              std::unordered_set<int>* unwritten) {
  std::vector<size_t> group;
  for (size_t size = 0; group.empty() || group.size() > size;) {
    size = group.size();
    std::vector<size_t> left;
    for (const size_t index : *remaining) {
      const GroupedNode& node = nodes[index];
      const bool is_ready = std::none_of(node.inputs.begin(), node.inputs.end(),
                                         [&](int tensor) { return unwritten->count(tensor) != 0; });
      if (is_ready && (group.empty() || node.is_claimed == nodes[group[0]].is_claimed)) {
        group.push_back(index);
        for (const int tensor : node.outputs) unwritten->erase(tensor);
      } else {
        left.push_back(index);
      }
    }
    *remaining = left;
  }
  return group;
}

}  // namespace

std::vector<std::vector<size_t>> GroupNodes(const std::vector<GroupedNode>& nodes) {
  std::unordered_set<int> unwritten;
  for (const GroupedNode& node : nodes) unwritten.insert(node.outputs.begin(), node.outputs.end());
  unwritten.erase(kOptionalTensor);
  std::vector<size_t> remaining(nodes.size());
  std::iota(remaining.begin(), remaining.end(), size_t{0});
  std::vector<std::vector<size_t>> groups;
  while (!remaining.empty()) groups.push_back(TakeGroup(nodes, &remaining, &unwritten));
  return groups;
}

}  // namespace litebnn::testing
