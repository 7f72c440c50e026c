// Runs a graph for fuzz targets.
#pragma once

#include <string>
#include <vector>

#include "tests/support/fake_runtime.h"

namespace litebnn::testing {

struct RunSettings {
  int num_threads = 1;
  size_t partition_size = 1;
  // The shape that the graph's first input gets for a second run; empty if there is no second run.
  std::vector<int> new_shape;
};

// Runs a graph with every ISA, as custom ops and through the delegate. Aborts unless all runs give the same bits, or
// refuse the graph with a message.
void RunOnEveryIsa(const Graph& graph, const RunSettings& settings);

}  // namespace litebnn::testing
