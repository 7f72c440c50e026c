// Random damage to graphs, for tests with invalid models.
#pragma once

#include "tests/support/graphs.h"

namespace litebnn::testing {

// Changes one random thing in a graph, which must have nodes and tensors. The ops refuse many of the damaged graphs.
void Damage(const RandomBits& random, Graph* graph);

}  // namespace litebnn::testing
