// The way in which fuzz targets run a graph.
#pragma once

#include <string>
#include <vector>

#include "tests/support/fake_runtime.h"

namespace litebnn::testing {

struct RunSettings {
  int num_threads = 1;
  size_t partition_size = 1;
  // The shape of the graph's first input in a second run; empty for none.
  std::vector<int> new_shape;
};

// Runs a graph with every ISA, as custom ops and through the delegate. Aborts unless all give the same bits, or refuse
// it with a message.
void RunOnEveryIsa(const Graph& graph, const RunSettings& settings);

}  // namespace litebnn::testing
