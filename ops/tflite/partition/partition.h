// A sequence of nodes that litebnn runs together: nodes that the delegate claims, or one custom op.
//
// Tensors between two nodes of a partition are in an arena while the partition runs, with the nodes' scratch memory.
// All other tensors belong to the runtime.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "tflite/partition/claim.h"
#include "tflite/partition/stages.h"

namespace litebnn {

class Partition {
 public:
  // Adds the next node in order of execution. The node must not read what later nodes write, nor write what earlier
  // ones write. `index` may be Node::kUnknownIndex. `node` is only read by this function; its options and tensors
  // belong to the model and must outlive the partition. If the op does not accept that many tensors, reports an error
  // and returns false.
  bool AddNode(TfLiteContext* context, const OpType& type, int index, const TfLiteNode& node);
  // Adds the nodes with these indices. Returns false after reporting an error, also if a node is not in `types`.
  bool AddNodes(TfLiteContext* context, const TfLiteIntArray& indices, const NodeTypes& types);
  // Declares the tensors that the runtime reads after the partition has run. All other tensors that its nodes write are
  // internal. The function must be called after the last node is added.
  void SetOutputs(const TfLiteIntArray& tensors);
  // Runs the nodes that unpack weights, which are no longer part of the partition then. Their outputs become constants
  // of the runtime, so that XNNPACK, which asks after this delegate, accepts the layers that read them. `weights` holds
  // the values. Returns false after reporting an error.
  bool UnpackWeights(TfLiteContext* context, const Isa& isa, ThreadPool& pool, RepackBudget* budget, Arena* weights);
  // Makes the unpacked weights computed tensors again. A runtime that undoes its delegates, as for a new size of an
  // input, may apply them again.
  void ForgetWeights(TfLiteContext* context);
  size_t size() const { return steps_.size(); }
  // Appends the partition to a JSON array, with the steps that unpack weights first.
  void Describe(const NodeTypes& types, std::string* text) const;

  // Validates every node and sets the shapes of the partition's outputs, for a run with `num_threads` threads. The
  // function is called again after inputs are resized. The first call takes the nodes' memory from `budget`; `arena`
  // grows as needed. Returns false after reporting an error.
  bool Prepare(TfLiteContext* context, const Isa& isa, int num_threads, RepackBudget* budget, Arena* arena);
  // Runs the nodes. `pool` must not have more threads than Prepare was given, and `arena` must be the same as in
  // Prepare. Returns false after reporting an error, also if the last Prepare failed. Allocates nothing.
  bool Run(TfLiteContext* context, ThreadPool& pool, Arena& arena);

  const MemoryPlan& memory_plan() const { return plan_; }

 private:
  bool ReportOutOfMemory(TfLiteContext* context) const;

  std::vector<Step> steps_;
  std::vector<Step> unpacking_;  // the steps that have unpacked weights
  std::unordered_set<int> outputs_;
  bool is_prepared_ = false;
  std::vector<Task> tasks_;
  MemoryPlan plan_;
};

}  // namespace litebnn
