#include <gtest/gtest.h>

#include <utility>

#include "tests/support/sliced_op.h"
#include "tflite/partition/stages.h"

namespace litebnn {
namespace {

// Makes a step that reads its first `slice_count` inputs one by one, as its slices. If `slice_count` is 0, the step
// reads all of `inputs` together. If `copies` is true, it writes as many bytes as it reads, otherwise fewer.
Step MakeStep(const std::vector<int>& inputs, int output, size_t slice_count = 0, bool copies = false) {
  constexpr size_t kBytes = 64;
  Step step = {&kAddOpType, 0, {}, {{output, true, copies ? slice_count * kBytes : 1}}, nullptr, 0, nullptr};
  for (int tensor : inputs) step.inputs.push_back({tensor, true, kBytes});
  step.op = std::make_unique<SlicedOp>(slice_count);
  return step;
}

// Returns two numbers for each task, which is a step or one slice of a step: the tensor that it writes, and the slice's
// number. Tasks are in the order of execution.
std::vector<std::pair<int, size_t>> Outputs(const std::vector<Step>& steps) {
  std::vector<std::pair<int, size_t>> outputs;
  for (const Task& task : OrderTasks(steps)) outputs.emplace_back(steps[task.step].outputs[0].tensor, task.slice);
  return outputs;
}

using Order = std::vector<std::pair<int, size_t>>;

TEST(OrderTasks, PartsComeBehindTheWriterOfTheirInput) {
  std::vector<Step> steps;
  steps.push_back(MakeStep({0}, 1, 1));
  steps.push_back(MakeStep({1}, 2));
  steps.push_back(MakeStep({2}, 3, 1));
  steps.push_back(MakeStep({3}, 4));
  steps.push_back(MakeStep({4, 2, 0}, 5, 3));
  steps.push_back(MakeStep({2, 5}, 6, 1));
  steps.push_back(MakeStep({0}, 7, 1));
  steps.push_back(MakeStep({7}, 8));
  EXPECT_EQ(Outputs(steps), (Order{{1, 0}, {5, 2}, {7, 0}, {2, 0}, {3, 0}, {5, 1}, {6, 0}, {4, 0}, {5, 0}, {8, 0}}));
}

TEST(OrderTasks, WhatReadsAPartedOutputComesBehindItsLastPart) {
  std::vector<Step> steps;
  steps.push_back(MakeStep({0}, 1));
  steps.push_back(MakeStep({0}, 2));
  steps.push_back(MakeStep({2, 1}, 3, 2));
  steps.push_back(MakeStep({3, 1}, 4, 2));
  EXPECT_EQ(Outputs(steps), (Order{{1, 0}, {3, 1}, {4, 1}, {2, 0}, {3, 0}, {4, 0}}));
}

TEST(OrderTasks, ASoleCopyComesBehindTheWriterOfItsInput) {
  std::vector<Step> steps;
  steps.push_back(MakeStep({0}, 1));
  steps.push_back(MakeStep({0}, 2));
  steps.push_back(MakeStep({1, 2}, 3, 2, true));
  steps.push_back(MakeStep({1}, 4, 1));
  EXPECT_EQ(Outputs(steps), (Order{{1, 0}, {3, 0}, {4, 0}, {2, 0}, {3, 1}}));
}

TEST(OrderTasks, CopiesOfWhatOthersCopyStayWhereTheyAre) {
  std::vector<Step> steps;
  steps.push_back(MakeStep({0}, 1));
  steps.push_back(MakeStep({1}, 2, 1, true));
  steps.push_back(MakeStep({2}, 3));
  steps.push_back(MakeStep({1, 3}, 4, 2, true));
  steps.push_back(MakeStep({4}, 5, 1));
  steps.push_back(MakeStep({1}, 6, 1));
  EXPECT_EQ(Outputs(steps), (Order{{1, 0}, {6, 0}, {2, 0}, {3, 0}, {4, 0}, {4, 1}, {5, 0}}));
}

TEST(OrderTasks, OthersStayWhereTheyAre) {
  std::vector<Step> steps;
  steps.push_back(MakeStep({0}, 1));
  steps.push_back(MakeStep({1}, 2));
  steps.push_back(MakeStep({0}, 3));
  steps.push_back(MakeStep({1}, 4));
  EXPECT_EQ(Outputs(steps), (Order{{1, 0}, {2, 0}, {3, 0}, {4, 0}}));
}

}  // namespace
}  // namespace litebnn
