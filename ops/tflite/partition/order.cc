#include <algorithm>
#include <unordered_map>

#include "tflite/partition/stages.h"

namespace litebnn {
namespace {

const Binding& Image(const Step& step, size_t slice) { return step.inputs[slice * step.op->InputsPerSlice()]; }

// True for a "copying" step, such as a concatenation. Its op treats each input as a slice of the output, and the step
// writes at least as many bytes as it reads.
bool Copies(const Step& step) {
  const size_t slice_count = step.op->SliceCount();
  size_t bytes = 0;
  for (size_t slice = 0; slice < slice_count; ++slice) bytes += Image(step, slice).bytes;
  return slice_count > 0 && step.outputs[0].bytes >= bytes;
}

// Marks copying steps that share an input with another copying step. If such steps ran early, all their copies would be
// in memory at once.
std::vector<bool> FindRepeatedCopies(const std::vector<Step>& steps) {
  std::vector<bool> repeats(steps.size());
  std::unordered_map<int, size_t> first_copies;  // of each image
  for (size_t step = 0; step < steps.size(); ++step) {
    if (!Copies(steps[step])) continue;
    for (size_t slice = 0; slice < steps[step].op->SliceCount(); ++slice) {
      const size_t first = first_copies.try_emplace(Image(steps[step], slice).tensor, step).first->second;
      if (first != step) repeats[first] = repeats[step] = true;
    }
  }
  return repeats;
}

}  // namespace

std::vector<Task> OrderTasks(const std::vector<Step>& steps) {
  const std::vector<bool> repeats = FindRepeatedCopies(steps);
  // Tasks, which run a step or a slice of a step, are grouped by the time at which they run. Those in slots[0] run
  // before all steps, those in slots[i + 1] at the time of step i or right after it.
  std::vector<std::vector<Task>> slots(steps.size() + 1);
  std::unordered_map<int, size_t> slot_of;  // slot of the step or slice that completes a tensor
  for (size_t step = 0; step < steps.size(); ++step) {
    const size_t slice_count = steps[step].op->SliceCount();
    const bool stays = repeats[step];
    size_t last = slice_count == 0 || stays ? step + 1 : 0;
    if (slice_count == 0) slots[last].push_back({step, 0});
    for (size_t slice = 0; slice < slice_count; ++slice) {
      // A tensor that no step writes exists before the partition runs. A task that reads it can run before all steps,
      // in slot 0.
      const auto writer = slot_of.find(Image(steps[step], slice).tensor);
      const size_t written = writer == slot_of.end() ? 0 : writer->second, slot = stays ? last : written;
      slots[slot].push_back({step, slice});
      last = std::max(last, slot);
    }
    for (const Binding& output : steps[step].outputs) slot_of[output.tensor] = last;
  }
  std::vector<Task> tasks;
  for (const std::vector<Task>& slot : slots) tasks.insert(tasks.end(), slot.begin(), slot.end());
  return tasks;
}

}  // namespace litebnn
