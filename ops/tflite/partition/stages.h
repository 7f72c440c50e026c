// The stages in which a delegate handles its partition, a set of the model's nodes: fuse, prepare, order, plan memory,
// run. The first runs once; the next three run again after inputs are resized. To prepare and to
// run steps is in partition.cc; the other stages have files of their own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "kernels/platform/thread_pool.h"
#include "tflite/ops/op.h"
#include "tflite/partition/arena.h"
#include "tflite/partition/repack_budget.h"
#include "tflite/runtime/node.h"

namespace litebnn {

// A Binding is an input or output of a step, with the memory that it gets.
struct Binding {
  int tensor;  // kOptionalTensor if left out
  // Preparing a step sets the members `internal`, `bytes` and `value_bytes` of the step's inputs and outputs.
  bool internal = false;  // written and read only within this partition
  size_t bytes = 0;
  size_t value_bytes = 0;
  // The index in MemoryPlan::buffers of an internal tensor's buffer. It is set when memory is planned.
  size_t buffer = 0;
};

// A node of the model, or several nodes fused into one.
struct Step {
  const OpType* type;
  int index;
  std::vector<Binding> inputs, outputs;  // a fused step may have two outputs, other steps have one
  const uint8_t* options;
  size_t options_size;
  const void* builtin_data;
  std::vector<int> fused_outputs = {};  // as Node::fused_outputs
  std::vector<int> nodes = {};          // the indices of the nodes that it runs, in no particular order
  std::unique_ptr<Op> op = nullptr;
  size_t workspace = 0;  // index in MemoryPlan::buffers
  // The arguments of the op's Run. They are stored here, because running must not allocate memory.
  std::vector<const void*> input_data = {};
  std::vector<void*> output_data = {};

  // Calls visit(position) for each input that `slice` reads, until it returns false. Returns true if visit never
  // returned false.
  template <typename Visit>
  bool ForInputs(size_t slice, Visit visit) const {
    const size_t count = op->InputsPerSlice(), shared = op->SliceCount() * count;
    const size_t end = std::min((slice + 1) * count, shared);
    for (size_t i = slice * count;; ++i) {
      if (i == end) i = shared;
      if (i >= inputs.size()) return true;
      if (!visit(i)) return false;
    }
  }

  // Returns a Node that describes this step, with empty lists of inputs and outputs.
  Node Describe(TfLiteContext* context) const {
    return {context, type->name, index,        type->input_names, {},
            {},      options,    options_size, builtin_data,      fused_outputs.data()};
  }
};

// A task to run: a step (an op of the partition), or a slice of a step whose op can process its inputs separately.
struct Task {
  size_t step;   // index of the step
  size_t slice;  // 0 if the step has no slices
};

struct MemoryPlan {
  std::vector<ArenaBuffer> buffers;  // internal tensors, then one workspace per step
  size_t arena_bytes = 0;            // size of all buffers together
  size_t unshared_bytes = 0;         // sum of the buffers' sizes, without reuse
  size_t owned_bytes = 0;            // repacked weights and similar data
};

// In the functions below, `outputs` are the tensors that the runtime reads after the partition has run. Functions with
// a context have reported an error if they return false.

// Fuses MUL by a gate, PRELU and ADD of images into one step if nothing else reads the values between. One of the three
// ops may be missing.
void FuseGates(const std::unordered_set<int>& outputs, std::vector<Step>* steps);

// Fuses a convolution with the only reader of its output. This reader is an ADD, or an ADD that is already fused with a
// gate, a PRELU or both. The fused step takes the position of the reader.
void FuseConvolutions(const std::unordered_set<int>& outputs, std::vector<Step>* steps);

// Joins the packing of an image's signs with an AVERAGE_POOL_2D of the same image. The joined step takes the position
// of the earlier one, and has the outputs of both.
void FuseAverages(std::vector<Step>* steps);

// Fuses MUL and ADD with constants, of floats or of int8, into the packing of signs that is their only reader. The
// packing may already be joined with an average.
void FuseBatchNorms(const std::unordered_set<int>& outputs, std::vector<Step>* steps);

// Fuses packings with batch norms into the CONCATENATION that is their only reader, up to the maximum number of inputs.
// The batch norms are all of floats or all of int8.
void FusePackings(const std::unordered_set<int>& outputs, std::vector<Step>* steps);

// Fuses CONCATENATION, MUL with constants, max pool and ADD with constants into one step if nothing else reads the
// values between. Any of these ops may be missing. The fused step reads the CONCATENATION's inputs directly, without a
// copy.
void FuseImages(const std::unordered_set<int>& outputs, std::vector<Step>* steps);

// Puts prepared steps into an order. Each slice of a step runs right after its input is written. The input is then
// still in the caches, and its memory can soon be used again. An example is a dense network, in which many layers read
// one tensor, each with its own batch norm. Steps that share inputs and write at least as much as they read keep their
// place. If they ran early, all their outputs would be in memory at once.
std::vector<Task> OrderTasks(const std::vector<Step>& steps);

// Plans memory for a run with `num_threads` threads. Returns false if the buffers do not fit in size_t.
bool PlanMemory(int num_threads, const std::vector<Task>& tasks, std::vector<Step>* steps, MemoryPlan* plan);

// Appends the steps to a JSON array, for litebnn_describe (include/litebnn/litebnn.h). `types` are the ops of the
// nodes, by their indices.
void DescribeSteps(const std::vector<Step>& steps, const std::vector<const OpType*>& types, std::string* text);

}  // namespace litebnn
