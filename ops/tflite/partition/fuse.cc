#include <unordered_map>
#include <utility>
#include <vector>

#include "tflite/ops/op_list.h"
#include "tflite/partition/stages.h"

namespace litebnn {
namespace {

// Makes one step of a convolution and the addition behind it, where that can be; returns whether.
bool Fuse(const Step& addition, const std::unordered_set<int>& outputs, const std::unordered_map<int, int>& readers,
          Step* convolution) {
  if (convolution->type != &kBconv2dOpType || addition.type != &kAddOpType) return false;
  const int sum = convolution->outputs[0].tensor;
  const Binding &first = addition.inputs[0], &second = addition.inputs[1];
  if (first.tensor != sum && second.tensor != sum) return false;
  if (readers.find(sum)->second != 1 || outputs.count(sum) != 0) return false;

  convolution->type = &kBconv2dAddOpType;
  convolution->inputs.resize(kBconv2dOpType.max_inputs, {kOptionalTensor});
  convolution->inputs.push_back(first.tensor == sum ? second : first);
  convolution->outputs = addition.outputs;
  convolution->builtin_data = addition.builtin_data;
  return true;
}

// How often each tensor is read.
std::unordered_map<int, int> CountReaders(const std::vector<Step>& steps) {
  std::unordered_map<int, int> readers;
  for (const Step& step : steps) {
    for (const Binding& input : step.inputs) ++readers[input.tensor];
  }
  return readers;
}

}  // namespace

void FuseAdditions(const std::unordered_set<int>& outputs, std::vector<Step>* steps) {
  const std::unordered_map<int, int> readers = CountReaders(*steps);
  std::vector<Step> kept;
  for (Step& step : *steps) {
    if (kept.empty() || !Fuse(step, outputs, readers, &kept.back())) kept.push_back(std::move(step));
  }
  *steps = std::move(kept);
}

void FuseBatchNorms(const std::unordered_set<int>& outputs, std::vector<Step>* steps) {
  const std::unordered_map<int, int> readers = CountReaders(*steps);
  std::unordered_map<int, size_t> writers;
  for (size_t i = 0; i < steps->size(); ++i) {
    for (const Binding& output : (*steps)[i].outputs) writers[output.tensor] = i;
  }
  std::vector<bool> is_fused(steps->size());
  for (Step& sign : *steps) {
    if (sign.type != &kQuantizeOpType) continue;
    // Makes the input that of the step before, where that has a constant for each channel; returns the constant.
    const auto take = [&](const OpType& type) -> Binding {
      const int tensor = sign.inputs[0].tensor;
      const auto writer = writers.find(tensor);
      if (writer == writers.end() || (*steps)[writer->second].type != &type) return {kOptionalTensor};
      if (readers.find(tensor)->second != 1 || outputs.count(tensor) != 0) return {kOptionalTensor};
      is_fused[writer->second] = true;
      const std::vector<Binding>& inputs = (*steps)[writer->second].inputs;
      sign.inputs[0] = inputs[0];
      return inputs[1];
    };
    const Binding addend = take(kShiftOpType), multiplier = take(kScaleOpType);
    if (addend.tensor == kOptionalTensor && multiplier.tensor == kOptionalTensor) continue;
    sign.type = &kAffineQuantizeOpType;
    sign.inputs.push_back(multiplier);
    sign.inputs.push_back(addend);
  }
  std::vector<Step> kept;
  for (size_t i = 0; i < steps->size(); ++i) {
    if (!is_fused[i]) kept.push_back(std::move((*steps)[i]));
  }
  *steps = std::move(kept);
}

}  // namespace litebnn
