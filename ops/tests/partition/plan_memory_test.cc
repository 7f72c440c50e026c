#include <gtest/gtest.h>

#include <utility>

#include "tests/support/sliced_op.h"
#include "tflite/ops/op_list.h"
#include "tflite/partition/stages.h"

namespace litebnn {
namespace {

class OverwritingOp final : public Op {
 public:
  bool Prepare(const Node&) override { return true; }
  size_t WorkspaceBytes(int num_threads) const override { return 64 * static_cast<size_t>(num_threads); }
  std::optional<size_t> OverwritableInput() const override { return 0; }
  size_t OwnedBytes() const override { return 5; }
  void Run(ThreadPool&, const void* const*, void* const*, void*, size_t) const override {}
};

// An op that reads its input while it writes its output, so both need separate memory.
class ReadingOp final : public Op {
 public:
  bool Prepare(const Node&) override { return true; }
  void Run(ThreadPool&, const void* const*, void* const*, void*, size_t) const override {}
};

// A step between tensors of `bytes` bytes. Tensor 0 and the output of the last step belong to the runtime; all other
// tensors are internal to the partition.
Step OverwritingStep(const std::vector<int>& inputs, int output, size_t bytes = 1024) {
  Step step = {&kAddOpType, 0, {}, {}, nullptr, 0, nullptr};
  for (int tensor : inputs) step.inputs.push_back({tensor, tensor > 0, bytes, 4});
  step.outputs.push_back({output, true, bytes, 4});
  step.op = std::make_unique<OverwritingOp>();
  return step;
}

MemoryPlan Plan(std::vector<Step>* steps) {
  steps->back().outputs[0].internal = false;
  MemoryPlan plan;
  EXPECT_TRUE(PlanMemory(2, OrderTasks(*steps), steps, &plan));
  return plan;
}

TEST(PlanMemory, OutputsTakeTheMemoryOfTheirInput) {
  std::vector<Step> steps;
  for (int i = 0; i < 4; ++i) steps.push_back(OverwritingStep({i}, i + 1));
  const MemoryPlan plan = Plan(&steps);
  for (size_t i = 1; i < 3; ++i) EXPECT_EQ(steps[i].outputs[0].buffer, steps[0].outputs[0].buffer);
  EXPECT_EQ(plan.arena_bytes, 1024u + 128);
  EXPECT_EQ(plan.unshared_bytes, 1024u + 4 * 128);
  EXPECT_EQ(plan.owned_bytes, 4u * 5);
}

TEST(PlanMemory, NotThatOfAnInputWhichIsReadLater) {
  std::vector<Step> steps;
  steps.push_back(OverwritingStep({0}, 1));
  steps.push_back(OverwritingStep({1}, 2));
  steps.push_back(OverwritingStep({2, 1}, 3));
  const MemoryPlan plan = Plan(&steps);
  const size_t first = steps[0].outputs[0].buffer, second = steps[1].outputs[0].buffer;
  EXPECT_NE(first, second);
  EXPECT_EQ(steps[2].inputs[1].buffer, first);
  EXPECT_EQ(plan.buffers[first].last, 2);
  EXPECT_EQ(plan.arena_bytes, 2 * 1024u + 128);
}

TEST(PlanMemory, NorThatOfAnInputWhichIsReadMeanwhile) {
  std::vector<Step> steps;
  for (int i = 0; i < 3; ++i) steps.push_back(OverwritingStep({i}, i + 1));
  steps[1].op = std::make_unique<ReadingOp>();
  Plan(&steps);
  EXPECT_NE(steps[0].outputs[0].buffer, steps[1].outputs[0].buffer);
}

TEST(PlanMemory, NorThatOfAnInputOfAnotherSize) {
  std::vector<Step> steps;
  steps.push_back(OverwritingStep({0}, 1));
  steps.push_back(OverwritingStep({1}, 2));
  steps[1].outputs[0].bytes = 2048;
  steps.push_back(OverwritingStep({2}, 3, 2048));
  Plan(&steps);
  EXPECT_NE(steps[0].outputs[0].buffer, steps[1].outputs[0].buffer);
}

TEST(PlanMemory, TwoOutputsOfAStepHaveBuffersOfTheirOwn) {
  std::vector<Step> steps;
  steps.push_back(OverwritingStep({0}, 1));
  steps.push_back(OverwritingStep({1}, 2));
  steps[1].outputs.push_back({3, true, 512, 4});
  steps[1].op = std::make_unique<ReadingOp>();
  steps.push_back(OverwritingStep({2}, 4));
  steps.push_back(OverwritingStep({4, 3}, 5));
  const MemoryPlan plan = Plan(&steps);
  const Binding &first = steps[1].outputs[0], &second = steps[1].outputs[1];
  EXPECT_NE(first.buffer, second.buffer);
  EXPECT_NE(first.buffer, steps[0].outputs[0].buffer);
  EXPECT_EQ(steps[3].inputs[1].buffer, second.buffer);
  EXPECT_EQ(plan.buffers[second.buffer].first, 1);
  EXPECT_EQ(plan.buffers[second.buffer].last, 3);
}

TEST(PlanMemory, IsMadeAnewEachTime) {
  std::vector<Step> steps;
  for (int i = 0; i < 3; ++i) steps.push_back(OverwritingStep({i}, i + 1));
  MemoryPlan plan = Plan(&steps);
  const MemoryPlan first = plan;
  ASSERT_TRUE(PlanMemory(2, OrderTasks(steps), &steps, &plan));
  EXPECT_EQ(plan.buffers.size(), first.buffers.size());
  EXPECT_EQ(plan.arena_bytes, first.arena_bytes);
  EXPECT_EQ(plan.unshared_bytes, first.unshared_bytes);
  EXPECT_EQ(plan.owned_bytes, first.owned_bytes);
}

TEST(PlanMemory, PartsAreInUseUntilTheirOwnTaskAndTheWholeFromTheFirst) {
  std::vector<Step> steps;
  for (int i = 1; i <= 3; ++i) steps.push_back(OverwritingStep({0}, i));
  steps.push_back(OverwritingStep({1, 2, 3}, 4, 3072));
  steps[3].op = std::make_unique<SlicedOp>(3);
  steps.push_back(OverwritingStep({4}, 5, 3072));
  const MemoryPlan plan = Plan(&steps);
  const auto life = [&](const Binding& binding) {
    const ArenaBuffer& buffer = plan.buffers[binding.buffer];
    return std::pair<int, int>{buffer.first, buffer.last};
  };
  // Each of the steps 0 to 2 writes one slice of step 3, and this slice of step 3 runs right after it. Step 4 is last.
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(life(steps[static_cast<size_t>(i)].outputs[0]), (std::pair<int, int>{2 * i, 2 * i + 1}));
  }
  EXPECT_EQ(life(steps[3].outputs[0]), (std::pair<int, int>{1, 6}));
  EXPECT_EQ(plan.arena_bytes, 3072u + 1024 + 128);
}

TEST(PlanMemory, LayersThatEachCopyAllPartsBeforeThemDoNotKeepTheirCopies) {
  constexpr int kLayers = 8;
  std::vector<Step> steps;
  std::vector<int> slices;
  for (int layer = 1; layer <= kLayers; ++layer) {
    steps.push_back(OverwritingStep({slices.empty() ? 0 : 100 + layer - 1}, layer));
    steps.back().inputs[0].bytes = 1024 * slices.size();
    slices.push_back(layer);
    steps.push_back(OverwritingStep(slices, 100 + layer, 1024 * slices.size()));
    for (Binding& slice : steps.back().inputs) slice.bytes = 1024;
    steps.back().op = std::make_unique<SlicedOp>(slices.size());
  }
  steps.push_back(OverwritingStep({100 + kLayers}, 200));
  steps.back().inputs[0].bytes = 1024 * kLayers;
  // After each layer, a step copies the layers' outputs so far into one joined tensor. The arena holds the outputs
  // of all layers and the last joined tensor, but no earlier joined tensor.
  EXPECT_EQ(Plan(&steps).arena_bytes, 2 * 1024u * kLayers);
}

}  // namespace
}  // namespace litebnn
