#include "tests/support/groups.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "tflite/runtime/abi.h"

namespace litebnn::testing {
namespace {

// Takes the next group from the places in `rest`, and what it writes from `to_come`.
std::vector<size_t> TakeGroup(const std::vector<GroupedNode>& nodes, std::vector<size_t>* rest,
                              std::unordered_set<int>* to_come) {
  std::vector<size_t> group;
  for (size_t size = 0; group.empty() || group.size() > size;) {
    size = group.size();
    std::vector<size_t> left;
    for (const size_t place : *rest) {
      const GroupedNode& node = nodes[place];
      const bool is_ready =
          std::none_of(node.inputs.begin(), node.inputs.end(), [&](int tensor) { return to_come->count(tensor) != 0; });
      if (is_ready && (group.empty() || node.is_claimed == nodes[group[0]].is_claimed)) {
        group.push_back(place);
        for (const int tensor : node.outputs) to_come->erase(tensor);
      } else {
        left.push_back(place);
      }
    }
    *rest = left;
  }
  return group;
}

}  // namespace

std::vector<std::vector<size_t>> GroupNodes(const std::vector<GroupedNode>& nodes) {
  std::unordered_set<int> to_come;
  for (const GroupedNode& node : nodes) to_come.insert(node.outputs.begin(), node.outputs.end());
  to_come.erase(kOptionalTensor);
  std::vector<size_t> rest(nodes.size());
  std::iota(rest.begin(), rest.end(), size_t{0});
  std::vector<std::vector<size_t>> groups;
  while (!rest.empty()) groups.push_back(TakeGroup(nodes, &rest, &to_come));
  return groups;
}

}  // namespace litebnn::testing
