// The stages that a partition goes through, each in a file of its own: fuse, prepare, order, plan memory, run. The
// first is gone through once, the next three whenever inputs have been resized.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "kernels/platform/thread_pool.h"
#include "tflite/ops/op.h"
#include "tflite/partition/arena.h"
#include "tflite/partition/repack_budget.h"
#include "tflite/runtime/node.h"

namespace litebnn {

// One input or output of a step.
struct Binding {
  int tensor;  // kOptionalTensor where left out
  // These are set when the step is prepared.
  bool internal = false;  // written and read in this partition only
  size_t bytes = 0;
  size_t value_bytes = 0;
  // An internal tensor's place in MemoryPlan::buffers is set when memory is planned.
  size_t buffer = 0;
};

// A node of the model, or what several are fused into.
struct Step {
  const OpType* type;
  int index;
  std::vector<Binding> inputs, outputs;  // one output
  const uint8_t* options;
  size_t options_size;
  const void* builtin_data;
  std::unique_ptr<Op> op = nullptr;
  size_t workspace = 0;  // its place in MemoryPlan::buffers
  // Run enters here what the op is given, as running allocates nothing.
  std::vector<const void*> input_data = {};

  // Calls visit(position) for each input that it reads when it runs that part, while that returns true; returns whether
  // it always did.
  template <typename Visit>
  bool ForInputs(size_t part, Visit visit) const {
    const size_t count = op->InputsPerPart(), behind = op->PartCount() * count;
    const size_t end = std::min((part + 1) * count, behind);
    for (size_t i = part * count;; ++i) {
      if (i == end) i = behind;
      if (i >= inputs.size()) return true;
      if (!visit(i)) return false;
    }
  }

  // The node without its tensors.
  Node Describe(TfLiteContext* context) const {
    return {context, type->name, index, type->input_names, {}, {}, options, options_size, builtin_data};
  }
};

// A step, or a part of one, that runs.
struct Task {
  size_t step;  // its number
  size_t part;  // 0 where the step has none
};

struct MemoryPlan {
  std::vector<ArenaBuffer> buffers;  // those of internal tensors, then one workspace for each step
  size_t arena_bytes = 0;            // what the buffers take together
  size_t unshared_bytes = 0;         // the same if each had memory of its own
  size_t owned_bytes = 0;            // repacked weights and the like
};

// In these, `outputs` are the tensors that the runtime reads when the partition has run, and false means that an error
// has been reported where there is a context to report it to.

// Makes one step of a MUL by a gate, a PRELU and an ADD of images that follow each other and that nothing else reads;
// one of them may be missing.
void FuseGates(const std::unordered_set<int>& outputs, std::vector<Step>* steps);

// Makes one step of each convolution and the ADD that is the only reader of its output, or the step of a gate or a
// PRELU with an ADD. It comes where these were.
void FuseConvolutions(const std::unordered_set<int>& outputs, std::vector<Step>* steps);

// Makes one step of each packing of signs and the MUL and ADD with constants before it that nothing else reads.
void FuseBatchNorms(const std::unordered_set<int>& outputs, std::vector<Step>* steps);

// Makes one step of a CONCATENATION of packed signs and the packings behind batch norms that write its inputs, where
// nothing else reads these, and one step may have so many.
void FusePackings(const std::unordered_set<int>& outputs, std::vector<Step>* steps);

// Makes one step of a CONCATENATION, a MUL with constants, a max pool and an ADD with constants that follow each other
// and that nothing else reads; any of them may be missing. The parts are read where they are then, and nothing is
// copied.
void FuseImages(const std::unordered_set<int>& outputs, std::vector<Step>* steps);

// Validates each step and finds the shape of what it writes, in order; resizes `outputs`. What a step holds is taken
// from `budget` the first time.
bool PrepareSteps(TfLiteContext* context, const Isa& isa, const std::unordered_set<int>& outputs, RepackBudget* budget,
                  std::vector<Step>* steps);

// The order in which prepared steps run. Each part of one comes right behind what writes its input, which is in the
// caches then, and whose memory others may take so much sooner: in a dense network many layers read it, each with a
// batch norm of its own, and the last pools all of them. Steps that write no less than they read, and of which several
// read the same, stay where they are: early they would take so many times the memory.
std::vector<Task> OrderTasks(const std::vector<Step>& steps);

// Plans for a run with that many threads. False where the buffers do not fit in size_t.
bool PlanMemory(int num_threads, const std::vector<Task>& tasks, std::vector<Step>* steps, MemoryPlan* plan);

// Allocates nothing. `arena` has the bytes that `plan` wants.
bool RunTasks(TfLiteContext* context, ThreadPool& pool, const MemoryPlan& plan, const std::vector<Task>& tasks,
              Arena& arena, std::vector<Step>* steps);

}  // namespace litebnn
