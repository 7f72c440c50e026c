#include <unordered_map>

#include "tflite/partition/stages.h"

namespace litebnn {
namespace {

// Makes a buffer in the arena that no task (a step of the partition, or a slice of one) uses yet.
ArenaBuffer NewBuffer(size_t bytes) { return {bytes, -1, -1, 0}; }

// Returns, for each tensor, the position in `tasks` (steps, and slices of steps) of the last task that reads the
// tensor.
std::unordered_map<int, int> FindLastReaders(const std::vector<Task>& tasks, const std::vector<Step>& steps) {
  std::unordered_map<int, int> last_readers;
  for (size_t number = 0; number < tasks.size(); ++number) {
    const Step& step = steps[tasks[number].step];
    step.ForInputs(tasks[number].slice, [&](size_t i) {
      last_readers[step.inputs[i].tensor] = static_cast<int>(number);
      return true;
    });
  }
  return last_readers;
}

// Returns the input of `step` whose buffer the step's output may reuse, or null if there is none. `number` is the index
// of the last task (a step or a slice of a step) of `step`. No later task may read the input.
const Binding* FindOverwritable(const Step& step, int number, const std::unordered_map<int, int>& last_readers) {
  const std::optional<size_t> position = step.op->OverwritableInput();
  if (!position) return nullptr;
  const Binding& input = step.inputs[*position];
  const bool fits = input.internal && input.bytes == step.outputs[0].bytes;
  return fits && last_readers.find(input.tensor)->second == number ? &input : nullptr;
}

// Assigns a buffer to each internal tensor, and one to the workspace of each step.
void BindBuffers(int num_threads, const std::vector<Task>& tasks, std::vector<Step>* steps, MemoryPlan* plan) {
  const std::unordered_map<int, int> last_readers = FindLastReaders(tasks, *steps);
  std::vector<int> last_tasks(steps->size());
  for (size_t number = 0; number < tasks.size(); ++number) last_tasks[tasks[number].step] = static_cast<int>(number);
  std::unordered_map<int, size_t> buffers_of;
  for (size_t number = 0; number < steps->size(); ++number) {
    Step& step = (*steps)[number];
    for (Binding& input : step.inputs) {
      if (input.internal) input.buffer = buffers_of[input.tensor];
    }
    for (Binding& output : step.outputs) {
      if (!output.internal) continue;
      const Binding* overwritten = FindOverwritable(step, last_tasks[number], last_readers);
      output.buffer = overwritten == nullptr ? plan->buffers.size() : overwritten->buffer;
      if (overwritten == nullptr) plan->buffers.push_back(NewBuffer(output.bytes));
      buffers_of[output.tensor] = output.buffer;
    }
  }
  for (Step& step : *steps) {
    step.workspace = plan->buffers.size();
    plan->buffers.push_back(NewBuffer(step.op->WorkspaceBytes(num_threads)));
    plan->owned_bytes += step.op->OwnedBytes();
  }
}

}  // namespace

bool PlanMemory(int num_threads, const std::vector<Task>& tasks, std::vector<Step>* steps, MemoryPlan* plan) {
  *plan = {};
  BindBuffers(num_threads, tasks, steps, plan);
  for (size_t number = 0; number < tasks.size(); ++number) {
    const Step& step = (*steps)[tasks[number].step];
    const auto use = [&](size_t index) {
      ArenaBuffer& buffer = plan->buffers[index];
      buffer.last = static_cast<int>(number);
      if (buffer.first < 0) buffer.first = buffer.last;
    };
    step.ForInputs(tasks[number].slice, [&](size_t i) {
      if (step.inputs[i].internal) use(step.inputs[i].buffer);
      return true;
    });
    for (const Binding& output : step.outputs) {
      if (output.internal) use(output.buffer);
    }
    use(step.workspace);
  }
  for (const ArenaBuffer& buffer : plan->buffers) plan->unshared_bytes += buffer.bytes;
  return PlanArena(&plan->buffers, &plan->arena_bytes);
}

}  // namespace litebnn
