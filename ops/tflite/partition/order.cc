#include <algorithm>
#include <unordered_map>

#include "tflite/partition/stages.h"

namespace litebnn {

std::vector<Task> OrderTasks(const std::vector<Step>& steps) {
  // The first place is before all steps, the others are behind one each.
  std::vector<std::vector<Task>> places(steps.size() + 1);
  std::unordered_map<int, size_t> place_of;  // of what writes a tensor, or the last part of it
  for (size_t step = 0; step < steps.size(); ++step) {
    const std::vector<Binding>& inputs = steps[step].inputs;
    const size_t part_count = steps[step].op->PartCount(), input_count = steps[step].op->InputsPerPart();
    size_t last = part_count == 0 ? step + 1 : 0;
    if (part_count == 0) places[last].push_back({step, 0});
    for (size_t part = 0; part < part_count; ++part) {
      // What other partitions have written is there from the start.
      const auto writer = place_of.find(inputs[part * input_count].tensor);
      const size_t place = writer == place_of.end() ? 0 : writer->second;
      places[place].push_back({step, part});
      last = std::max(last, place);
    }
    for (const Binding& output : steps[step].outputs) place_of[output.tensor] = last;
  }
  std::vector<Task> tasks;
  for (const std::vector<Task>& place : places) tasks.insert(tasks.end(), place.begin(), place.end());
  return tasks;
}

}  // namespace litebnn
