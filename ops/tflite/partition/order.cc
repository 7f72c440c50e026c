#include <algorithm>
#include <unordered_map>

#include "tflite/partition/stages.h"

namespace litebnn {
namespace {

const Binding& Image(const Step& step, size_t part) { return step.inputs[part * step.op->InputsPerPart()]; }

// Whether it has parts, and writes no less than their images.
bool Copies(const Step& step) {
  const size_t part_count = step.op->PartCount();
  size_t bytes = 0;
  for (size_t part = 0; part < part_count; ++part) bytes += Image(step, part).bytes;
  return part_count > 0 && step.outputs[0].bytes >= bytes;
}

// The steps that copy what others copy too. What all of these write would be there at once if their parts ran early.
std::vector<bool> FindRepeatedCopies(const std::vector<Step>& steps) {
  std::vector<bool> repeats(steps.size());
  std::unordered_map<int, size_t> first_copies;  // of each image
  for (size_t step = 0; step < steps.size(); ++step) {
    if (!Copies(steps[step])) continue;
    for (size_t part = 0; part < steps[step].op->PartCount(); ++part) {
      const size_t first = first_copies.emplace(Image(steps[step], part).tensor, step).first->second;
      if (first != step) repeats[first] = repeats[step] = true;
    }
  }
  return repeats;
}

}  // namespace

std::vector<Task> OrderTasks(const std::vector<Step>& steps) {
  const std::vector<bool> repeats = FindRepeatedCopies(steps);
  // The first place is before all steps, the others are behind one each.
  std::vector<std::vector<Task>> places(steps.size() + 1);
  std::unordered_map<int, size_t> place_of;  // of what writes a tensor, or the last part of it
  for (size_t step = 0; step < steps.size(); ++step) {
    const size_t part_count = steps[step].op->PartCount();
    size_t last = part_count == 0 || repeats[step] ? step + 1 : 0;
    if (part_count == 0) places[last].push_back({step, 0});
    for (size_t part = 0; part < part_count; ++part) {
      // What other partitions have written is there from the start.
      const auto writer = place_of.find(Image(steps[step], part).tensor);
      const size_t written = writer == place_of.end() ? 0 : writer->second, place = repeats[step] ? last : written;
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
