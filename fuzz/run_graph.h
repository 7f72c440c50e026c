// How targets run a graph.
#pragma once

#include <string>
#include <vector>

#include "tests/support/fake_runtime.h"

namespace litebnn::testing {

struct HowToRun {
  int num_threads = 1;
  size_t partition_size = 1;
  // The shape of the graph's first input in a second run; empty for none.
  std::vector<int> new_shape;
};

// Runs a graph in every ISA, as custom ops and through the delegate. Ends the program where it is neither refused with
// a message nor gives the same bits in all of them.
void RunEveryWay(const Graph& graph, const HowToRun& how);

}  // namespace litebnn::testing
