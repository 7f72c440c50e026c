#include <unordered_map>

#include "tflite/ops/op_list.h"
#include "tflite/partition/stages.h"

namespace litebnn {

void FuseAdditions(const std::unordered_set<int>& outputs, std::vector<Step>* steps) {
  std::unordered_map<int, int> readers;
  for (const Step& step : *steps) {
    for (const Binding& input : step.inputs) ++readers[input.tensor];
  }
  for (size_t i = 1; i < steps->size(); ++i) {
    Step &convolution = (*steps)[i - 1], &addition = (*steps)[i];
    if (convolution.type != &kBconv2dOpType || addition.type != &kAddOpType) continue;
    // A convolution with the wrong number of them is refused when it is prepared.
    if (convolution.inputs.size() < kBconv2dOpType.min_inputs ||
        convolution.inputs.size() > kBconv2dOpType.max_inputs || convolution.outputs.size() != 1) {
      continue;
    }
    const int sum = convolution.outputs[0].tensor;
    const Binding &first = addition.inputs[0], &second = addition.inputs[1];
    if (readers[sum] != 1 || outputs.count(sum) != 0 || (first.tensor != sum && second.tensor != sum)) continue;

    convolution.type = &kBconv2dAddOpType;
    convolution.inputs.resize(kBconv2dOpType.max_inputs, {kOptionalTensor});
    convolution.inputs.push_back(first.tensor == sum ? second : first);
    convolution.outputs = addition.outputs;
    convolution.builtin_data = addition.builtin_data;
    steps->erase(steps->begin() + static_cast<ptrdiff_t>(i));
  }
}

}  // namespace litebnn
