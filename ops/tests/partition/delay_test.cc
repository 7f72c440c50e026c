#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "tests/support/groups.h"
#include "tests/support/plan.h"
#include "tflite/runtime/node.h"

namespace litebnn::testing {
namespace {

using Indices = std::vector<int>;
using Sets = std::vector<Indices>;

constexpr int32_t kOther = kTfLiteBuiltinSub;

struct Step {
  Indices nodes, inputs, outputs;
};

Indices ToVector(const TfLiteIntArray& array) { return Indices(array.data, array.data + array.size); }

std::vector<Step> StepsOf(const Plan& plan) {
  std::vector<Step> steps;
  for (const PlannedNode& planned : plan.nodes()) {
    steps.push_back({{planned.index}, ToVector(*planned.node->inputs), ToVector(*planned.node->outputs)});
  }
  return steps;
}

// The steps that a runtime runs after it has replaced the nodes in `set` by one step of a delegate.
std::vector<Step> Replace(const std::vector<Step>& steps, const Indices& set) {
  std::vector<GroupedNode> nodes;
  for (const Step& step : steps) {
    nodes.push_back({step.inputs, step.outputs, std::count(set.begin(), set.end(), step.nodes[0]) != 0});
  }
  std::vector<Step> replaced;
  for (const std::vector<size_t>& group : GroupNodes(nodes)) {
    if (!nodes[group[0]].is_claimed) {
      for (const size_t place : group) replaced.push_back(steps[place]);
      continue;
    }
    Step partition;
    for (const size_t place : group) {
      const Step& step = steps[place];
      partition.nodes.insert(partition.nodes.end(), step.nodes.begin(), step.nodes.end());
      partition.inputs.insert(partition.inputs.end(), step.inputs.begin(), step.inputs.end());
      partition.outputs.insert(partition.outputs.end(), step.outputs.begin(), step.outputs.end());
    }
    // Tensors that nodes of the partition write are not inputs of the partition.
    const auto is_own = [&](int tensor) {
      return std::count(partition.outputs.begin(), partition.outputs.end(), tensor) != 0;
    };
    partition.inputs.erase(std::remove_if(partition.inputs.begin(), partition.inputs.end(), is_own),
                           partition.inputs.end());
    replaced.push_back(partition);
  }
  return replaced;
}

// The partitions into which a runtime groups the claimed nodes, if a delegate passes it one of the `sets` after the
// other. The nodes of a partition have the order of the plan.
Sets PartitionsOf(const Plan& plan, const Sets& sets) {
  std::set<int> claimed;
  for (const Indices& set : sets) claimed.insert(set.begin(), set.end());
  Sets partitions;
  std::vector<Step> steps = StepsOf(plan);
  for (const Indices& set : sets) steps = Replace(steps, set);
  for (Step& step : steps) {
    if (claimed.count(step.nodes[0]) == 0) continue;
    std::sort(step.nodes.begin(), step.nodes.end());
    partitions.push_back(step.nodes);
  }
  return partitions;
}

Sets Delayed(const Plan& plan, const Indices& claimed) {
  return DelayNodes(plan.context(), plan.nodes(), ClaimsOf(plan, claimed));
}

// For each node that the delegate claims, the number of its partition.
Sets Partitions(const Plan& plan, const Indices& claimed) { return PartitionsOf(plan, Delayed(plan, claimed)); }

// A block of a residual network whose input is signs. Node 0 packs signs, node 1 convolves them, node 2 is a builtin op
// on the shortcut, and node 3 adds both.
struct Block {
  Block() {
    input = plan.AddTensor({1, 4, 4, 64});
    packed = plan.AddTensor({1, 4, 4, 2});
    filter = plan.AddTensor({64, 3, 3, 2000});
    plan.tensor(filter).allocation_type = kTfLiteMmapRo;
    convolved = plan.AddTensor({1, 4, 4, 64});
    shortcut = plan.AddTensor({1, 4, 4, 64});
    sum = plan.AddTensor({1, 4, 4, 64});
    plan.AddNode(kTfLiteBuiltinCustom, {input}, {packed});
    plan.AddNode(kTfLiteBuiltinCustom, {packed, filter, kOptionalTensor}, {convolved});
    plan.AddNode(kOther, {packed}, {shortcut});
    plan.AddNode(kTfLiteBuiltinAdd, {convolved, shortcut}, {sum});
  }

  Plan plan;
  int input, packed, filter, convolved, shortcut, sum;
};

const Indices kBlockClaims = {0, 1, 3};

TEST(Delay, AConvolutionRunsWithTheAdditionThatReadsIt) {
  const Block block;
  EXPECT_EQ(PartitionsOf(block.plan, {kBlockClaims}), (Sets{{0, 1}, {3}}));
  EXPECT_EQ(Delayed(block.plan, kBlockClaims), (Sets{{0}, {1, 3}}));
  EXPECT_EQ(Partitions(block.plan, kBlockClaims), (Sets{{0}, {1, 3}}));
}

TEST(Delay, ConvolutionsOfEachBlockDo) {
  Block block;
  Indices claimed = kBlockClaims;
  int image = block.sum;
  for (int node = 4; node < 20; node += 4) {
    const int packed = block.plan.AddTensor({1, 4, 4, 2}), convolved = block.plan.AddTensor({1, 4, 4, 64});
    const int shortcut = block.plan.AddTensor({1, 4, 4, 64}), sum = block.plan.AddTensor({1, 4, 4, 64});
    block.plan.AddNode(kTfLiteBuiltinCustom, {image}, {packed});
    block.plan.AddNode(kTfLiteBuiltinCustom, {packed, block.filter}, {convolved});
    block.plan.AddNode(kOther, {image}, {shortcut});
    block.plan.AddNode(kTfLiteBuiltinAdd, {shortcut, convolved}, {sum});
    claimed.insert(claimed.end(), {node, node + 1, node + 3});
    image = sum;
  }
  EXPECT_EQ(Delayed(block.plan, claimed), (Sets{{0, 5, 7, 8, 13, 15, 16}, {1, 3, 4, 9, 11, 12, 17, 19}}));
  EXPECT_EQ(Partitions(block.plan, claimed), (Sets{{0}, {1, 3, 4}, {5, 7, 8}, {9, 11, 12}, {13, 15, 16}, {17, 19}}));
}

TEST(Delay, WhatReadsAConvolutionWithItsReaderDoesToo) {
  // The node after the convolution reads as many bytes as it writes, so delaying only this node gains nothing.
  for (const int words : {2, 64}) {
    Plan plan;
    const auto image = [&plan] { return plan.AddTensor({1, 4, 4, 64}); };
    const int input = plan.AddTensor({1, 4, 4, words}), convolved = image(), leaked = image(), shortcut = image();
    const int first = image(), sum = image();
    plan.AddNode(kTfLiteBuiltinCustom, {input}, {first});
    plan.AddNode(kTfLiteBuiltinCustom, {input}, {convolved});
    plan.AddNode(kTfLiteBuiltinPrelu, {convolved}, {leaked});
    plan.AddNode(kOther, {first}, {shortcut});
    plan.AddNode(kTfLiteBuiltinAdd, {leaked, shortcut}, {sum});
    EXPECT_EQ(Partitions(plan, {0, 1, 2, 4}), words == 2 ? (Sets{{0}, {1, 2, 4}}) : (Sets{{0, 1, 2}, {4}}));
  }
}

// A plan in which the delegate claims all nodes but 3 and 5. Nodes 0, 4 and 6 are in three partitions, because nodes 3
// and 5 run between them. Node 6 also reads the output of node 1. If `with_one_rung` is true, the graph has one more
// edge (a rung): node 4 also reads the output of node 2.
struct Ladder {
  explicit Ladder(bool with_one_rung) {
    const auto image = [this] { return plan.AddTensor({1, 4, 4, 64}); };
    const int input = plan.AddTensor({1, 4, 4, 2}), a = image(), b = image(), c = image(), d = image(), e = image();
    const int for_last = image(), for_middle = image();
    plan.AddNode(kTfLiteBuiltinCustom, {input}, {a});
    plan.AddNode(kTfLiteBuiltinCustom, {input}, {for_last});
    plan.AddNode(kTfLiteBuiltinCustom, {input}, {for_middle});
    plan.AddNode(kOther, {a}, {b});
    plan.AddNode(kTfLiteBuiltinAdd, with_one_rung ? Indices{b, for_middle} : Indices{b}, {c});
    plan.AddNode(kOther, {c}, {d});
    plan.AddNode(kTfLiteBuiltinAdd, {d, for_last}, {e});
  }
  Plan plan;
};

TEST(Delay, ByTwoPartitionsWhereNothingWaitsForTheOneBetween) {
  EXPECT_EQ(Partitions(Ladder(false).plan, {0, 1, 2, 4, 6}), (Sets{{0, 2}, {4}, {1, 6}}));
  EXPECT_EQ(Partitions(Ladder(true).plan, {0, 1, 2, 4, 6}), (Sets{{0, 1}, {2, 4}, {6}}));
}

TEST(Delay, NothingWhereAllAreOnePartition) { EXPECT_EQ(Delayed(Block().plan, {0, 1, 2, 3}), (Sets{{0, 1, 2, 3}})); }

TEST(Delay, NothingForAReaderThatIsNotClaimed) { EXPECT_EQ(Delayed(Block().plan, {0, 1}), (Sets{{0, 1}})); }

TEST(Delay, NothingThatOthersReadToo) {
  Block block;
  block.plan.AddNode(kOther, {block.convolved}, {block.plan.AddTensor({1, 4, 4, 64})});
  EXPECT_EQ(Delayed(block.plan, kBlockClaims), (Sets{kBlockClaims}));
}

TEST(Delay, NothingThatReadsAsMuchAsItWrites) {
  Block block;
  block.plan.tensor(block.packed).dims->data[3] = 63;
  EXPECT_EQ(Delayed(block.plan, kBlockClaims).size(), 2u);
  block.plan.tensor(block.packed).dims->data[3] = 64;
  EXPECT_EQ(Delayed(block.plan, kBlockClaims), (Sets{kBlockClaims}));
}

TEST(Delay, BytesAreCountedAndNotValues) {
  for (const int channels : {255, 256}) {
    Block block;
    block.plan.tensor(block.packed).type = kTfLiteInt8;
    block.plan.tensor(block.packed).dims->data[3] = channels;
    EXPECT_EQ(Delayed(block.plan, kBlockClaims).size(), channels == 255 ? 2u : 1u);
  }
}

TEST(Delay, NothingOfWhichASizeIsNotKnown) {
  for (const bool written : {false, true}) {
    Block block;
    block.plan.tensor(written ? block.convolved : block.packed).dims->data[1] = 0;
    EXPECT_EQ(Delayed(block.plan, kBlockClaims), (Sets{kBlockClaims}));
  }
  for (const bool written : {false, true}) {
    Block block;
    block.plan.tensor(written ? block.convolved : block.packed).dims = nullptr;
    EXPECT_EQ(Delayed(block.plan, kBlockClaims), (Sets{kBlockClaims}));
  }
}

TEST(Delay, NothingThatReadsOrWritesWhatChanges) {
  for (const bool written : {false, true}) {
    Block block;
    block.plan.tensor(written ? block.convolved : block.packed).is_variable = true;
    EXPECT_EQ(Delayed(block.plan, kBlockClaims), (Sets{kBlockClaims}));
  }
}

TEST(Delay, NothingThatWritesSeveralTensorsOrNone) {
  for (const Indices& outputs : {Indices{5, 6}, {}, {kOptionalTensor}, {7}, {77}}) {
    Plan plan;
    for (const int size : {64, 2, 64, 64, 64, 64, 64}) plan.AddTensor({1, 4, 4, size});
    plan.AddNode(kTfLiteBuiltinCustom, {0}, {1});
    plan.AddNode(kTfLiteBuiltinCustom, {1}, outputs);
    plan.AddNode(kOther, {1}, {3});
    plan.AddNode(kTfLiteBuiltinAdd, {5, 3}, {4});
    EXPECT_EQ(Delayed(plan, kBlockClaims), (Sets{kBlockClaims}));
  }
}

TEST(Delay, NothingThatTheRuntimeWouldBeginWith) {
  Plan plan;
  const int input = plan.AddTensor({1, 4, 4, 2}), convolved = plan.AddTensor({1, 4, 4, 64});
  const int shortcut = plan.AddTensor({1, 4, 4, 64}), sum = plan.AddTensor({1, 4, 4, 64});
  const int image = plan.AddTensor({1, 4, 4, 64});
  plan.AddNode(kTfLiteBuiltinCustom, {input}, {convolved});
  plan.AddNode(kTfLiteBuiltinCustom, {input}, {image});
  plan.AddNode(kOther, {image}, {shortcut});
  plan.AddNode(kTfLiteBuiltinAdd, {convolved, shortcut}, {sum});
  EXPECT_EQ(Delayed(plan, {0, 1, 3}), (Sets{{0, 1, 3}}));
}

TEST(Delay, NothingBesideNodesWithState) {
  Block resource;
  resource.plan.tensor(resource.plan.AddTensor({1})).type = kTfLiteResource;
  EXPECT_EQ(Delayed(resource.plan, kBlockClaims), (Sets{kBlockClaims}));
  for (const int32_t code : {kTfLiteBuiltinIf, kTfLiteBuiltinWhile, kTfLiteBuiltinCallOnce}) {
    Block block;
    block.plan.AddNode(code, {}, {});
    EXPECT_EQ(Delayed(block.plan, kBlockClaims), (Sets{kBlockClaims}));
  }
}

// A plan of nodes with random inputs and outputs, some of which are claimed.
struct RandomPlan {
  explicit RandomPlan(uint32_t seed) {
    std::mt19937 random(seed);
    const auto pick = [&random](size_t count) { return static_cast<int>(random() % count); };
    std::vector<int> there;
    for (int i = 0; i < 3; ++i) there.push_back(plan.AddTensor({1 + pick(9)}));
    const int count = 2 + pick(30);
    for (int node = 0; node < count; ++node) {
      Indices inputs, outputs;
      for (int i = pick(4); i >= 0; --i) {
        // Random nodes prefer inputs that were written recently.
        const size_t recent = std::min(there.size(), size_t{6});
        inputs.push_back(pick(8) == 0 ? kOptionalTensor : there[there.size() - 1 - static_cast<size_t>(pick(recent))]);
      }
      for (int i = pick(8) == 0 ? 1 : 0; i >= 0; --i) outputs.push_back(plan.AddTensor({1 + pick(9)}));
      plan.AddNode(kOther, inputs, outputs);
      there.insert(there.end(), outputs.begin(), outputs.end());
      if (pick(3) > 0) claimed.push_back(node);
    }
  }

  // The number of values that partitions write for other partitions.
  int CountCrossingValues(const Sets& partitions) {
    std::map<int, std::set<size_t>> readers;
    std::map<int, size_t> partition_of;
    for (size_t i = 0; i < partitions.size(); ++i) {
      for (const int node : partitions[i]) partition_of[node] = i;
    }
    const auto find = [&](int node) { return partition_of.count(node) == 0 ? partitions.size() : partition_of[node]; };
    for (const PlannedNode& planned : plan.nodes()) {
      for (const int tensor : ToVector(*planned.node->inputs)) readers[tensor].insert(find(planned.index));
    }
    int values = 0;
    for (const PlannedNode& planned : plan.nodes()) {
      if (partition_of.count(planned.index) == 0) continue;
      for (const int tensor : ToVector(*planned.node->outputs)) {
        std::set<size_t> others = readers[tensor];
        others.erase(find(planned.index));
        if (!others.empty()) values += plan.tensor(tensor).dims->data[0];
      }
    }
    return values;
  }

  Plan plan;
  Indices claimed;
};

TEST(Delay, OfRandomNodesTakesMemoryTrafficAndNothingElse) {
  int delayed = 0;
  for (uint32_t seed = 0; seed < 5000; ++seed) {
    RandomPlan random(seed);
    const Sets sets = Delayed(random.plan, random.claimed), together = {random.claimed};
    Indices all;
    for (const Indices& set : sets) {
      EXPECT_TRUE(std::is_sorted(set.begin(), set.end()));
      all.insert(all.end(), set.begin(), set.end());
    }
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all, random.claimed) << seed;
    if (sets.size() == 1) continue;
    ++delayed;
    ASSERT_EQ(sets.size(), 2u);
    const Sets before = PartitionsOf(random.plan, together), after = PartitionsOf(random.plan, sets);
    EXPECT_LE(after.size(), before.size()) << seed;
    EXPECT_LT(random.CountCrossingValues(after), random.CountCrossingValues(before)) << seed;
  }
  EXPECT_GT(delayed, 300);
}

}  // namespace
}  // namespace litebnn::testing
