// The choice of nodes that the delegate claims, and what follows from it before the runtime makes partitions of them.
#pragma once

#include <string>
#include <vector>

#include "tflite/ops/op.h"
#include "tflite/runtime/execution_plan.h"

namespace litebnn {

// What becomes of a node.
struct Claim {
  const OpType* type = nullptr;  // the op that computes the node; null if litebnn has none
  const char* reason = nullptr;  // why the runtime keeps the node; null if the delegate claims it

  bool is_claimed() const { return reason == nullptr; }
};

// The ops that compute nodes, by the nodes' indices; null for nodes that litebnn has no op for.
using NodeTypes = std::vector<const OpType*>;

// Claims the nodes that litebnn runs: custom ops, and builtin ops that are faster in litebnn. Most builtin ops are
// faster only next to custom ops. Returns a claim for each node in `plan`.
std::vector<Claim> ClaimNodes(const TfLiteContext& context, const std::vector<PlannedNode>& plan);

// Reports a node that reads a tensor before it is written, or that writes a tensor a second time. Runtimes accept such
// models. If a tensor is read before it is written, runtimes up to 2.14 crash while they look for partitions. If a
// tensor is written twice, any runtime may move a reader past the second writer once a delegate has claimed nodes.
bool CheckOrder(TfLiteContext* context, const std::vector<PlannedNode>& plan);

// Splits the nodes that the delegate claims, in the order of `plan`. The result has the sets of nodes that are passed
// to the runtime one after the other. CheckOrder must have accepted the plan.
//
// The runtime groups claimed nodes into partitions. Each node is in the first partition in which its inputs are
// available. Therefore a convolution and the ADD that reads it are in different partitions if the ADD also waits for a
// node that is not claimed. The convolution then writes floats for a later partition.
//
// To delay a convolution until its ADD can run, the claimed nodes are passed to the runtime in two sets. No partition
// has nodes of both sets. The convolution and its ADD are in one set, and the nodes of the partition before the ADD are
// in the other set. The convolution then runs in the partition of its ADD, and may be fused with it. The partition
// before writes only the convolution's input of packed signs. If no convolution needs a delay, there is only one set.
std::vector<std::vector<int>> DelayNodes(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                                         const std::vector<Claim>& claims);

// Estimates the cycles, on one core, of the nodes that the runtime keeps. Returns infinity if the work of such a node
// is unknown, because of its kind of op or its shapes.
double RemainingCycles(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                       const std::vector<Claim>& claims);

// Appends the nodes that the runtime keeps, each with the reason, to a JSON array for litebnn_describe
// (include/litebnn/litebnn.h).
void DescribeLeft(const std::vector<PlannedNode>& plan, const std::vector<Claim>& claims, std::string* text);

// Appends a comma to a JSON array that has an element.
void BeginElement(std::string* text);

}  // namespace litebnn
