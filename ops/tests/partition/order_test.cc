#include <gtest/gtest.h>

#include "tflite/ops/op_list.h"
#include "tflite/partition/stages.h"

namespace litebnn {
namespace {

Step MakeStep(const OpType& type, int input, int output) {
  return {&type, 0, {{input}}, {{output}}, nullptr, 0, nullptr};
}

// What the steps write, in their order.
std::vector<int> Outputs(const std::vector<Step>& steps) {
  std::vector<int> outputs;
  for (const Step& step : steps) outputs.push_back(step.outputs[0].tensor);
  return outputs;
}

TEST(Order, PacksSignsBehindTheirWriter) {
  std::vector<Step> steps;
  steps.push_back(MakeStep(kQuantizeOpType, 0, 1));
  steps.push_back(MakeStep(kBconv2dOpType, 1, 2));
  steps.push_back(MakeStep(kAffineQuantizeOpType, 2, 3));
  steps.push_back(MakeStep(kBconv2dOpType, 3, 4));
  steps.push_back(MakeStep(kQuantizeOpType, 4, 5));
  steps.push_back(MakeStep(kAffineQuantizeOpType, 2, 6));
  steps.push_back(MakeStep(kQuantizeOpType, 0, 7));
  steps.push_back(MakeStep(kConcatenationOpType, 7, 8));
  PackSignsEarly(&steps);
  EXPECT_EQ(Outputs(steps), (std::vector<int>{1, 7, 2, 3, 6, 4, 5, 8}));
}

TEST(Order, LeavesOthersWhereTheyAre) {
  std::vector<Step> steps;
  steps.push_back(MakeStep(kMaxPool2dOpType, 0, 1));
  steps.push_back(MakeStep(kMaxPool2dOpType, 1, 2));
  steps.push_back(MakeStep(kDequantizeOpType, 0, 3));
  steps.push_back(MakeStep(kMaxPool2dOpType, 1, 4));
  PackSignsEarly(&steps);
  EXPECT_EQ(Outputs(steps), (std::vector<int>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace litebnn
