// Small errors in graphs.
#pragma once

#include "tests/support/graphs.h"

namespace litebnn::testing {

// Changes one thing anywhere in a graph that has nodes and tensors: often the graph is refused then.
void Damage(const RandomBits& random, Graph* graph);

}  // namespace litebnn::testing
