// A run of nodes that litebnn computes in one go: the nodes that the delegate claims together, or one custom op.
//
// Tensors between two nodes of a partition lie in an arena, with the nodes' scratch, while it runs; all others are the
// runtime's.
#pragma once

#include <unordered_set>
#include <vector>

#include "tflite/partition/stages.h"

namespace litebnn {

class Partition {
 public:
  // Adds the next node in order of execution, which reads nothing that a later one writes and writes nothing that an
  // earlier one does. `index` may be Node::kUnknownIndex. `node` is read here only; its options and tensors belong to
  // the model and outlive the partition. False after an error has been reported: the op does not take so many tensors.
  bool AddNode(TfLiteContext* context, const OpType& type, int index, const TfLiteNode& node);
  // Adds the nodes with these indices. False after an error has been reported: also where litebnn does not know the op
  // of one.
  bool AddNodes(TfLiteContext* context, const TfLiteIntArray& indices);
  // To be called after the last node is added: declares the tensors that the runtime reads when the partition has run.
  // Others that its nodes write are internal.
  void SetOutputs(const TfLiteIntArray& tensors);
  size_t size() const { return steps_.size(); }

  // Validates every node and sets the shape of the partition's outputs, for a run with that many threads. Called again
  // when inputs have been resized. False after an error has been reported. What the nodes hold is taken from `budget`
  // the first time; `arena` becomes large enough.
  bool Prepare(TfLiteContext* context, const Isa& isa, int num_threads, RepackBudget* budget, Arena* arena);
  // Allocates nothing. `pool` has at most as many threads as were prepared for, `arena` is the same as in Prepare.
  // False after an error has been reported: also where the last Prepare gave false.
  bool Run(TfLiteContext* context, ThreadPool& pool, Arena& arena);

  const MemoryPlan& memory_plan() const { return plan_; }

 private:
  bool ReportOutOfMemory(TfLiteContext* context) const;

  std::vector<Step> steps_;
  std::unordered_set<int> outputs_;
  bool is_prepared_ = false;
  std::vector<Task> tasks_;
  MemoryPlan plan_;
};

}  // namespace litebnn
