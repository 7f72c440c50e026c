// A run of nodes that litebnn computes in one go: the nodes that the delegate claims together, or one custom op.
//
// Tensors between two nodes of a partition lie in an arena, with the nodes' scratch, while it runs; all others are the
// runtime's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/platform/thread_pool.h"
#include "tflite/ops/op.h"
#include "tflite/partition/arena.h"
#include "tflite/runtime/abi.h"

namespace litebnn {

class Partition {
 public:
  struct MemoryUse {
    size_t arena_bytes;     // for intermediate tensors and scratch
    size_t unshared_bytes;  // the same if each had memory of its own
    size_t owned_bytes;     // repacked weights and the like
  };

  // Adds the next node in order of execution, which reads nothing that a later one writes. `index` may be
  // Node::kUnknownIndex. `node` is read here only; its options and tensors belong to the model and outlive the
  // partition.
  void AddNode(const OpType& type, int index, const TfLiteNode& node);
  // After the last node: declares the tensors that the runtime reads when the partition has run. Others that its nodes
  // write are internal; where such a one goes from a convolution to an addition and nowhere else, the two become one.
  void SetOutputs(const TfLiteIntArray& tensors);
  size_t size() const { return steps_.size(); }

  // Validates every node and sets the shape of the partition's outputs, for a run with that many threads. Called again
  // when inputs have been resized. False after an error has been reported.
  // `arena` becomes large enough for it.
  bool Prepare(TfLiteContext* context, const Isa& isa, int num_threads, Arena* arena);
  // Allocates nothing. `pool` has at most as many threads as were prepared for, `arena` is the same as in Prepare.
  bool Run(TfLiteContext* context, ThreadPool& pool, const Arena& arena);

  MemoryUse memory_use() const { return memory_use_; }

 private:
  // One input or output of a node.
  struct Binding {
    int tensor;             // kOptionalTensor where left out
    bool internal = false;  // in the arena, as buffers_[buffer]
    size_t buffer = 0;
    size_t bytes = 0;
    size_t value_bytes = 0;
  };
  struct Step {
    const OpType* type;
    int index;
    std::vector<Binding> inputs, outputs;
    const uint8_t* options;
    size_t options_size;
    const void* builtin_data;
    std::unique_ptr<Op> op;
    size_t workspace = 0;  // buffers_[workspace]
    // What the op is given, entered by Run.
    std::vector<const void*> input_data;
    std::vector<void*> output_data;
  };
  struct InternalTensor {
    Tensor tensor;
    size_t buffer;
  };

  void FuseAdditions();
  bool PrepareStep(TfLiteContext* context, const Isa& isa, int number);
  // Each makes `tensors` what the node is to see, in its order.
  bool DescribeInputs(const Node& node, int number, std::vector<Tensor>* tensors);
  bool DescribeOutputs(const Node& node, int number, std::vector<Tensor>* tensors) const;
  bool KeepOutputs(const Node& node, int number, const std::vector<Tensor>& tensors);
  // Of an internal output of a step, perhaps that of an input which nothing reads any more.
  size_t BufferFor(int number, const Binding& output);
  int LastReader(int tensor) const;
  bool PlaceBuffers(TfLiteContext* context, int num_threads, Arena* arena);
  bool ReportOutOfMemory(TfLiteContext* context) const;

  std::vector<Step> steps_;
  std::unordered_set<int> outputs_;
  std::unordered_map<int, InternalTensor> internal_;  // those written by the steps that are prepared
  std::vector<ArenaBuffer> buffers_;
  MemoryUse memory_use_ = {};
};

}  // namespace litebnn
