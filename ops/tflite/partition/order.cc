#include <algorithm>
#include <unordered_map>
#include <utility>

#include "tflite/ops/op_list.h"
#include "tflite/partition/stages.h"

namespace litebnn {

void PackSignsEarly(std::vector<Step>* steps) {
  std::unordered_map<int, size_t> writers;
  // Beside its place each step has its number, so that those of one place keep their order.
  std::vector<std::pair<size_t, size_t>> places;
  for (size_t number = 0; number < steps->size(); ++number) {
    const Step& step = (*steps)[number];
    const bool packs = step.type == &kQuantizeOpType || step.type == &kAffineQuantizeOpType;
    const auto writer = writers.find(step.inputs[0].tensor);
    // What other partitions have written is there from the start.
    const size_t early = writer == writers.end() ? 0 : writer->second;
    const size_t place = packs ? early : number + 1;
    for (const Binding& output : step.outputs) writers[output.tensor] = place;
    places.emplace_back(place, number);
  }
  std::sort(places.begin(), places.end());
  std::vector<Step> ordered;
  for (const auto& place : places) ordered.push_back(std::move((*steps)[place.second]));
  *steps = std::move(ordered);
}

}  // namespace litebnn
