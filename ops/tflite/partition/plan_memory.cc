#include <unordered_map>

#include "tflite/partition/stages.h"

namespace litebnn {
namespace {

// The input whose buffer the output of step `number` may take, null where there is none: nothing reads it any more.
const Binding* FindOverwritable(const Step& step, int number, const std::unordered_map<int, int>& last_readers) {
  const std::optional<size_t> position = step.op->OverwritableInput();
  if (!position) return nullptr;
  const Binding& input = step.inputs[*position];
  const bool fits = input.internal && input.bytes == step.outputs[0].bytes;
  return fits && last_readers.find(input.tensor)->second == number ? &input : nullptr;
}

}  // namespace

bool PlanMemory(int num_threads, std::vector<Step>* steps, MemoryPlan* plan) {
  *plan = {};
  std::unordered_map<int, int> last_readers;   // by tensor
  std::unordered_map<int, size_t> buffers_of;  // by internal tensor
  int number = 0;
  for (const Step& step : *steps) {
    for (const Binding& input : step.inputs) last_readers[input.tensor] = number;
    ++number;
  }
  number = 0;
  for (Step& step : *steps) {
    for (Binding& input : step.inputs) {
      if (!input.internal) continue;
      input.buffer = buffers_of[input.tensor];
      plan->buffers[input.buffer].last = number;
    }
    Binding& output = step.outputs[0];
    if (output.internal) {
      const Binding* overwritten = FindOverwritable(step, number, last_readers);
      output.buffer = overwritten == nullptr ? plan->buffers.size() : overwritten->buffer;
      if (overwritten == nullptr) plan->buffers.push_back({output.bytes, number, number, 0});
      buffers_of[output.tensor] = output.buffer;
    }
    ++number;
  }
  number = 0;
  for (Step& step : *steps) {
    step.workspace = plan->buffers.size();
    plan->buffers.push_back({step.op->WorkspaceBytes(num_threads), number, number, 0});
    plan->owned_bytes += step.op->OwnedBytes();
    ++number;
  }
  for (const ArenaBuffer& buffer : plan->buffers) plan->unshared_bytes += buffer.bytes;
  return PlanArena(&plan->buffers, &plan->arena_bytes);
}

}  // namespace litebnn
