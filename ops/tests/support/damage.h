// Random damage to graphs.
#pragma once

#include "tests/support/graphs.h"

namespace litebnn::testing {

// Changes one thing in a graph with nodes and tensors. Ops refuse many of the results.
void Damage(const RandomBits& random, Graph* graph);

}  // namespace litebnn::testing
