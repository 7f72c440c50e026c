#include "tflite/partition/claim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/support/fake_builtins.h"
#include "tests/support/graphs.h"
#include "tests/support/plan.h"

namespace litebnn::testing {
namespace {

// The execution plan of a graph as a delegate sees it, without an interpreter.
class PlanOf {
 public:
  explicit PlanOf(const Graph& graph) : graph_(graph) {
    for (GraphTensor& described : graph_.tensors) {
      const int index = plan_.AddTensor(described.shape);
      plan_.SetGrids(index, described.grids);
      TfLiteTensor& tensor = plan_.tensor(index);
      tensor.type = described.type;
      tensor.params = described.quantization;
      if (described.constant.empty()) continue;
      tensor.allocation_type = kTfLiteMmapRo;
      tensor.data = described.constant.data() + (described.misaligned ? 1 : 0);
      tensor.bytes = described.constant.size();
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const GraphNode& described = graph_.nodes[i];
      plan_.AddNode(kTfLiteBuiltinCustom, described.inputs, described.outputs);
      if (FindFakeBuiltin(described.op, &plan_.registration(i))) {
        plan_.node(i).builtin_data = const_cast<int*>(described.builtin.data());
      } else {
        plan_.registration(i).custom_name = described.op.c_str();
      }
    }
    context_ = plan_.context();
  }

  // Shortens the runtime's list of tensors, so that the index of the last tensor is out of range.
  void HideLastTensor() { --context_.tensors_size; }

  // Makes a node look like one that another delegate has claimed. The builtin code of a delegate's kernel may be that
  // of a builtin op, but the kernel also has a name.
  void NameNode(size_t index) { plan_.registration(index).custom_name = "SomeDelegate"; }

  std::vector<Claim> Claims() const { return ClaimNodes(context_, plan_.nodes()); }
  std::vector<int> Claimed() const {
    std::vector<int> claimed;
    const std::vector<Claim> claims = Claims();
    for (size_t i = 0; i < claims.size(); ++i) {
      if (claims[i].is_claimed()) claimed.push_back(static_cast<int>(i));
    }
    return claimed;
  }
  bool Claims(size_t node) const {
    const std::vector<int> claimed = Claimed();
    return std::count(claimed.begin(), claimed.end(), static_cast<int>(node)) == 1;
  }

 private:
  Graph graph_;
  Plan plan_;
  TfLiteContext context_;
};

using Indices = std::vector<int>;

TEST(Claim, EveryCustomOp) { EXPECT_EQ(PlanOf(ChainGraph(1)).Claimed(), (Indices{0, 1, 2, 3, 4, 5})); }

TEST(Claim, NoCustomOpOfOthers) {
  Graph graph = ChainGraph(1);
  graph.nodes[2].op = "LceBMaxPool3d";
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0, 1, 3, 4, 5}));
  // "LceBconv2d with ADD" is an op that only fusion makes, so a model cannot contain it.
  graph.nodes[2].op = "LceBconv2d with ADD";
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0, 1, 3, 4, 5}));
}

TEST(Claim, AdditionsAndPoolsOfWhatIsClaimed) {
  EXPECT_EQ(PlanOf(ResidualGraph(2)).Claimed(), (Indices{0, 1, 2, 3, 4, 5}));
  const std::vector<int> pool = {kTfLitePaddingSame, 2, 2, 3, 3, kTfLiteActNone};
  EXPECT_EQ(PlanOf(PooledGraph({1, 7, 7, 40}, pool, pool)).Claimed(), (Indices{0, 1, 2, 3}));
}

// After a resize, a runtime may ask the delegate again which nodes it claims. At that time some shapes are old and some
// are new, and the delegate must give the same answer as before.
TEST(Claim, TheSameWhicheverTensorsHaveBeenResized) {
  GatedParams rows;
  rows.gate = {1, 1, rows.image[2]};
  for (const Graph& whole : {ResidualGraph(2), GatedGraph({}), GatedGraph(rows), JoinedGraph({}),
                             BatchNormGraph(64, 40, false), AveragedNormGraph({})}) {
    const Indices claimed = PlanOf(whole).Claimed();
    for (size_t tensor = 0; tensor < whole.tensors.size(); ++tensor) {
      if (!whole.tensors[tensor].constant.empty()) continue;
      Graph graph = whole;
      std::vector<int>& shape = graph.tensors[tensor].shape;
      for (size_t i = 0; i < 3; ++i) {
        shape[i] += 3;
        EXPECT_EQ(PlanOf(graph).Claimed(), claimed) << tensor;
      }
      std::fill_n(shape.begin(), 3, 1);
      EXPECT_EQ(PlanOf(graph).Claimed(), claimed) << tensor;
    }
  }
}

TEST(Claim, BatchNormsThatOnlySignsRead) {
  const Graph whole = BatchNormGraph(64, 40, false);
  ASSERT_EQ(PlanOf(whole).Claimed(), (Indices{0, 1, 2, 3, 4, 5, 6, 7}));
  Graph graph = whole;
  graph.nodes.push_back({"Other", whole.nodes[1].outputs, whole.nodes[1].outputs, {}, {}});
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{2, 3, 4, 5, 6, 7}));
  graph = whole;
  graph.nodes.resize(2);
  EXPECT_EQ(PlanOf(graph).Claimed(), Indices());
  graph = whole;
  graph.nodes[1].builtin = {1};
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{2, 3, 4, 5, 6, 7}));
  graph = whole;
  graph.nodes[2].op = "Other";
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{3, 4, 5, 6, 7}));
  const auto multiplier = static_cast<size_t>(whole.nodes[0].inputs[1]);
  graph = whole;
  graph.tensors[multiplier].constant.clear();
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{1, 2, 3, 4, 5, 6, 7}));
  graph = whole;
  for (const std::vector<int>& shape :
       {std::vector<int>{64, 1}, {1, 1, 4, 64}, {1, 3, 1, 64}, {2, 1, 1, 64}, {2, 64}, {1, 1, 1, 1, 64}}) {
    graph.tensors[multiplier].shape = shape;
    EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{1, 2, 3, 4, 5, 6, 7}));
  }
  graph.tensors[multiplier].shape = {1, 1, 1, 64};
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Claim, AveragesOfBatchNormsWhoseSignsArePacked) {
  for (const bool averages_first : {false, true}) {
    AveragedNormParams params;
    params.averages_first = averages_first;
    const Graph whole = AveragedNormGraph(params);
    ASSERT_EQ(PlanOf(whole).Claimed(), (Indices{0, 1, 2, 3}));
    const size_t average = averages_first ? 2 : 3, packing = averages_first ? 3 : 2;
    // Another node reads the batch norm.
    Graph graph = whole;
    graph.nodes.push_back({"Other", whole.nodes[1].outputs, whole.nodes[1].outputs, {}, {}});
    EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{static_cast<int>(packing)}));
    // No signs are packed.
    graph = whole;
    graph.nodes[packing].op = "Other";
    EXPECT_EQ(PlanOf(graph).Claimed(), Indices());
    // No batch norm writes the image.
    graph = whole;
    graph.nodes[0].op = graph.nodes[1].op = "Other";
    EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{static_cast<int>(packing)}));
    // The average has an activation, or an invalid stride.
    for (const size_t option : {1u, 5u}) {
      graph = whole;
      graph.nodes[average].builtin[option] = option == 1 ? 0 : kTfLiteActRelu;
      EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{static_cast<int>(packing)}));
    }
    graph = whole;
    graph.nodes[average].outputs.push_back(graph.inputs[0]);
    EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{static_cast<int>(packing)}));
    // Windows overlap.
    for (const size_t option : {1u, 2u}) {
      graph = whole;
      --graph.nodes[average].builtin[option];
      EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{static_cast<int>(packing)}));
    }
    // A second average reads the batch norm.
    graph = whole;
    graph.nodes.push_back(whole.nodes[average]);
    EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{static_cast<int>(packing)}));
    // The average reads the MUL, and the signs are those of the ADD.
    graph = whole;
    graph.nodes[average].inputs = whole.nodes[0].outputs;
    EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{1, static_cast<int>(packing)}));
  }
}

TEST(Claim, PoolsOfWhichSignsAreMadeAndWhatIsOnTheWay) {
  const Graph whole = BatchNormGraph(64, 64, false);
  const auto add_like = [](Graph* graph, int tensor) {
    graph->tensors.push_back(GraphTensor(graph->tensors[static_cast<size_t>(tensor)]));
    return static_cast<int>(graph->tensors.size()) - 1;
  };
  Graph graph = whole;
  const int image = whole.nodes[0].inputs[0], scaled = whole.nodes[0].outputs[0], shifted = whole.nodes[1].outputs[0];
  const int input = add_like(&graph, image);
  graph.nodes.insert(graph.nodes.begin(),
                     {"MAX_POOL_2D", {input}, {image}, {}, {kTfLitePaddingSame, 1, 1, 3, 3, kTfLiteActNone}});
  const Indices all = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(PlanOf(graph).Claimed(), all);
  // An op of the runtime may also read the output of the pool, the MUL or the ADD. The delegate still claims the max
  // pool and the batch norm.
  for (const int tensor : {image, scaled, shifted}) {
    Graph read = graph;
    read.nodes.push_back({"Other", {tensor}, {add_like(&read, tensor)}, {}, {}});
    EXPECT_EQ(PlanOf(read).Claimed(), all) << tensor;
  }
  Graph leaky = graph;
  leaky.nodes[2].op = "PRELU";
  leaky.nodes[2].builtin = {};
  leaky.nodes.push_back({"Other", {shifted}, {add_like(&leaky, shifted)}, {}, {}});
  EXPECT_EQ(PlanOf(leaky).Claimed(), all);
  graph.nodes[2].op = "Other";
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{3, 4, 5, 6, 7, 8}));
}

TEST(Claim, BatchNormsOfFloatsOnly) {
  const Graph whole = BatchNormGraph(64, 40, false);
  // The test sets the type of one tensor to int8: the image, the factors, or their product, which the addition reads.
  const std::vector<int> tensors = {whole.nodes[0].inputs[0], whole.nodes[0].inputs[1], whole.nodes[0].outputs[0]};
  for (size_t i = 0; i < tensors.size(); ++i) {
    Graph graph = whole;
    graph.tensors[static_cast<size_t>(tensors[i])].type = kTfLiteInt8;
    EXPECT_EQ(PlanOf(graph).Claimed(), i < 2 ? (Indices{1, 2, 3, 4, 5, 6, 7}) : (Indices{2, 3, 4, 5, 6, 7})) << i;
  }
  Graph graph = whole;
  graph.tensors[static_cast<size_t>(whole.nodes[1].outputs[0])].type = kTfLiteInt8;
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{2, 3, 4, 5, 6, 7}));
}

TEST(Claim, BatchNormsOfTwoInputsAndOneOutput) {
  const Graph whole = BatchNormGraph(64, 40, false);
  Graph graph = whole;
  graph.nodes[0].inputs.push_back(whole.nodes[0].inputs[1]);
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{1, 2, 3, 4, 5, 6, 7}));
  graph = whole;
  graph.nodes[0].inputs.pop_back();
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{1, 2, 3, 4, 5, 6, 7}));
  graph = whole;
  graph.nodes[0].outputs.push_back(whole.nodes[0].outputs[0]);
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{1, 2, 3, 4, 5, 6, 7}));
}

TEST(Claim, NothingOfTensorsThatAreNotThere) {
  const Graph whole = BatchNormGraph(64, 64, false);
  for (const int index : {-1, -7, 1 << 24}) {
    Graph graph = whole;
    graph.nodes[0].inputs[1] = index;
    EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{1, 2, 3, 4, 5, 6, 7})) << index;
    graph = whole;
    graph.nodes[6].inputs[1] = index;
    EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0, 1, 2, 3, 4, 5, 7})) << index;
    const std::vector<int> pool = {kTfLitePaddingSame, 2, 2, 3, 3, kTfLiteActNone};
    graph = PooledGraph({1, 7, 7, 40}, pool, pool);
    graph.nodes[1].inputs[1] = index;
    EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0})) << index;
  }
  for (const size_t node : {0u, 6u}) {
    Graph graph = whole;
    int& input = graph.nodes[node].inputs[0];
    graph.tensors.push_back(graph.tensors[static_cast<size_t>(input)]);
    input = static_cast<int>(graph.tensors.size()) - 1;
    PlanOf plan(graph);
    EXPECT_TRUE(plan.Claims(node));
    plan.HideLastTensor();
    EXPECT_FALSE(plan.Claims(node));
  }
}

TEST(Claim, ConcatenationsAlongTheLastAxisOnly) {
  for (const std::vector<int>& options : {std::vector<int>{2, 0}, {3, 1}}) {
    Graph graph = BatchNormGraph(64, 64, false);
    graph.nodes[6].builtin = options;
    EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0, 1, 2, 3, 4, 5, 7}));
    graph = JoinedGraph({});
    graph.nodes[2].builtin = options;
    EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0, 1}));
  }
  const Graph whole = BatchNormGraph(64, 64, false);
  const std::vector<int> slices = whole.nodes[6].inputs, outputs = whole.nodes[6].outputs;
  for (const size_t count : {0u, 1u, 256u, 257u}) {
    Graph graph = whole;
    graph.nodes[6].inputs.assign(count, slices[0]);
    const bool is_claimed = count > 0 && count <= 256;
    EXPECT_EQ(PlanOf(graph).Claimed(), (is_claimed ? Indices{0, 1, 2, 3, 4, 5, 6, 7} : Indices{0, 1, 2, 3, 4, 5, 7}))
        << count;
  }
  for (const std::vector<int>& other : {std::vector<int>{}, {outputs[0], outputs[0]}}) {
    Graph graph = whole;
    graph.nodes[6].outputs = other;
    EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0, 1, 2, 3, 4, 5, 7})) << other.size();
  }
}

TEST(Claim, WhatFollowsAConcatenation) {
  JoinedParams params;
  EXPECT_EQ(PlanOf(JoinedGraph(params)).Claimed(), (Indices{0, 1, 2, 3, 4, 5}));
  params.pool = {};
  EXPECT_EQ(PlanOf(JoinedGraph(params)).Claimed(), (Indices{0, 1, 2, 3, 4}));
  params.activation = 0;
  EXPECT_EQ(PlanOf(JoinedGraph(params)).Claimed(), (Indices{0, 1, 2, 3, 4}));
  params.activation = 3;
  EXPECT_EQ(PlanOf(JoinedGraph(params)).Claimed(), (Indices{0, 1, 2, 3}));
  Graph graph = JoinedGraph({});
  graph.nodes[0].op = graph.nodes[1].op = "Other";
  EXPECT_EQ(PlanOf(graph).Claimed(), Indices());
  // The delegate leaves a batch norm after a convolution to the runtime.
  graph = JoinedGraph({});
  graph.nodes[3].inputs[0] = graph.nodes[0].outputs[0];
  graph.tensors[static_cast<size_t>(graph.nodes[3].inputs[1])].shape = {40};
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0, 1, 2}));
}

TEST(Claim, GatesWithWhatFollowsThem) {
  for (const int product : {-1, 0, 1}) {
    for (const int sum : {-1, 0, 1}) {
      for (const bool leaks : {false, true}) {
        GatedParams params;
        params.product_activation = product;
        params.sum_activation = sum;
        params.leaks = leaks;
        params.gate_first = leaks;
        const Graph graph = GatedGraph(params);
        EXPECT_EQ(PlanOf(graph).Claimed().size(), graph.nodes.size()) << product << " " << sum << " " << leaks;
      }
    }
  }
  GatedParams params;
  params.sum_activation = 3;
  EXPECT_EQ(PlanOf(GatedGraph(params)).Claimed(), (Indices{0, 4}));
  params.sum_activation = 0;
  params.product_activation = 3;
  EXPECT_EQ(PlanOf(GatedGraph(params)).Claimed(), (Indices{0, 4}));
}

TEST(Claim, NoGateThatOnlyTheRuntimeReads) {
  const Graph whole = GatedGraph({});
  Graph graph = whole;
  graph.nodes.pop_back();
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0, 1, 2, 3}));
  graph.nodes[3].op = "Other";
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0}));
  // The delegate claims an addition only if it follows an op that it can be fused with.
  graph = whole;
  graph.nodes[1].op = "LceDequantize";
  graph.nodes[2].op = "Other";
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0, 1, 4}));
}

TEST(Claim, GatesOfEveryShape) {
  GatedParams params;
  params.image = {2, 3, 4};
  for (const std::vector<int>& gate :
       {std::vector<int>{}, {1}, {4}, {1, 1}, {3, 1}, {1, 1, 1}, {2, 1, 1}, {1, 1, 4}, {2, 3, 4}}) {
    params.gate = gate;
    for (const bool gate_first : {false, true}) {
      params.gate_first = gate_first;
      EXPECT_EQ(PlanOf(GatedGraph(params)).Claimed(), (Indices{0, 1, 2, 3, 4})) << gate.size();
    }
  }
  params.gate = {1, 1, 1, 1};
  EXPECT_EQ(PlanOf(GatedGraph(params)).Claimed(), (Indices{0, 4}));
  const Graph whole = GatedGraph({});
  const auto gate = static_cast<size_t>(whole.nodes[1].inputs[1]);
  const auto shape_gate = [&](const std::vector<int>& shape) {
    Graph graph = whole;
    graph.tensors[gate].shape = shape;
    return PlanOf(graph).Claimed();
  };
  EXPECT_EQ(shape_gate({1}), (Indices{0, 4}));
  EXPECT_EQ(shape_gate({}), (Indices{0, 4}));
  // The delegate treats a MUL by a constant gate as a batch norm, and leaves a batch norm after a convolution to the
  // runtime.
  Graph graph = whole;
  graph.tensors[gate].constant.resize(160);
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0, 4}));
}

TEST(Claim, NoGateOfMoreChannelsThanThereAreOnesFor) {
  GatedParams params;
  params.leaks = false;
  Graph graph = GatedGraph(params);
  for (const int channels : {1 << 20, (1 << 20) + 1}) {
    for (GraphTensor& tensor : graph.tensors) {
      if (tensor.type == kTfLiteFloat32 && tensor.constant.empty()) tensor.shape.back() = channels;
    }
    EXPECT_EQ(PlanOf(graph).Claimed(), channels == 1 << 20 ? (Indices{0, 1, 2, 3}) : (Indices{0, 3})) << channels;
  }
}

TEST(Claim, GatesAndPRelusOfFloatsThatAreThere) {
  const Graph whole = GatedGraph({});
  for (const size_t node : {1u, 2u}) {
    std::vector<int> tensors = whole.nodes[node].inputs;
    tensors.push_back(whole.nodes[node].outputs[0]);
    for (const int tensor : tensors) {
      Graph graph = whole;
      graph.tensors[static_cast<size_t>(tensor)].type = kTfLiteInt8;
      EXPECT_FALSE(PlanOf(graph).Claims(node)) << tensor;
    }
    for (const int index : {-1, -7, 1 << 24}) {
      for (const size_t input : {0u, 1u}) {
        Graph graph = whole;
        graph.nodes[node].inputs[input] = index;
        EXPECT_FALSE(PlanOf(graph).Claims(node)) << index;
      }
    }
    Graph graph = whole;
    graph.nodes[node].inputs.push_back(whole.nodes[node].inputs[0]);
    EXPECT_EQ(PlanOf(graph).Claimed().size(), 2u) << node;
    graph = whole;
    graph.nodes[node].outputs.push_back(whole.nodes[node].outputs[0]);
    EXPECT_EQ(PlanOf(graph).Claimed().size(), 2u) << node;
    graph = whole;
    graph.tensors[static_cast<size_t>(whole.nodes[node].outputs[0])].shape.pop_back();
    EXPECT_FALSE(PlanOf(graph).Claims(1)) << node;
  }
  // The slope of a PRELU must be a constant with one value per channel.
  const auto alpha = static_cast<size_t>(whole.nodes[2].inputs[1]);
  for (const std::vector<int>& shape : {std::vector<int>{1}, {6, 40}, {5, 6, 40}}) {
    Graph graph = whole;
    graph.tensors[alpha].shape = shape;
    EXPECT_FALSE(PlanOf(graph).Claims(2));
  }
  Graph graph = whole;
  graph.tensors[alpha].constant.clear();
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0, 4}));
}

TEST(Claim, NoKernelOfAnotherDelegate) {
  PlanOf plan(ResidualGraph(2));
  plan.NameNode(5);
  EXPECT_EQ(plan.Claimed(), (Indices{0, 1, 2, 3, 4}));
}

TEST(Claim, NothingThatReadsOnlyWhatOthersWrite) {
  Graph graph = ResidualGraph(1);
  graph.nodes[1].op = "Other";
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0}));
  const std::vector<int> pool = {kTfLitePaddingSame, 2, 2, 3, 3, kTfLiteActNone};
  graph = PooledGraph({1, 7, 7, 40}, pool, pool);
  graph.nodes[0].op = "Other";
  EXPECT_EQ(PlanOf(graph).Claimed(), Indices());
  // The delegate claims an addition only after a convolution, and a pool after any node that it claims.
  graph = PooledGraph({1, 7, 7, 40}, pool, pool);
  graph.nodes[0].op = "LceDequantize";
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0}));
  graph.nodes[2].inputs = graph.nodes[0].outputs;
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0, 2, 3}));
}

TEST(Claim, EveryPoolThatIsComputed) {
  for (const int padding : {kTfLitePaddingSame, kTfLitePaddingValid}) {
    for (const int activation : {kTfLiteActNone, kTfLiteActRelu}) {
      for (const int size : {1, 2, 3, 4}) {
        const std::vector<int> pool = {padding, size, size, size, size, activation};
        EXPECT_EQ(PlanOf(PooledGraph({1, 7, 7, 40}, pool, pool)).Claimed(), (Indices{0, 1, 2, 3})) << size;
      }
    }
  }
}

TEST(Claim, NoBuiltinThatIsNotComputed) {
  const std::vector<int> pool = {kTfLitePaddingSame, 2, 2, 3, 3, kTfLiteActNone};
  const Graph whole = PooledGraph({1, 7, 7, 40}, pool, pool);
  ASSERT_EQ(PlanOf(whole).Claimed(), (Indices{0, 1, 2, 3}));
  for (size_t member : {0u, 1u, 2u, 3u, 4u, 5u}) {
    Graph graph = whole;
    graph.nodes[2].builtin[member] = member == 5 ? 2 : 0;
    EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0, 1})) << member;
  }
  Graph graph = whole;
  graph.nodes[1].builtin[0] = 3;
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0}));
  const auto sum = static_cast<size_t>(whole.nodes[1].outputs[0]);
  graph = whole;
  graph.tensors[sum].type = kTfLiteInt8;
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0}));
  graph = whole;
  graph.tensors[sum].shape.pop_back();
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0}));
  graph = whole;
  graph.tensors[static_cast<size_t>(whole.nodes[3].outputs[0])].constant = {0};
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0, 1, 2}));
  graph = whole;
  graph.nodes[2].inputs.push_back(graph.nodes[2].inputs[0]);
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0, 1}));
}

// The roles of the tensors in an Int8Graph.
struct Int8Tensors {
  GraphTensor &input, &filter, &bias, &stem, &convolved, &sum, &pooled;
  explicit Int8Tensors(Graph* graph)
      : input(Of(graph, graph->nodes[0].inputs[0])),
        filter(Of(graph, graph->nodes[0].inputs[1])),
        bias(Of(graph, graph->nodes[0].inputs[2])),
        stem(Of(graph, graph->nodes[0].outputs[0])),
        convolved(Of(graph, graph->nodes[2].outputs[0])),
        sum(Of(graph, graph->nodes[3].outputs[0])),
        pooled(Of(graph, graph->nodes[4].outputs[0])) {}
  static GraphTensor& Of(Graph* graph, int index) { return graph->tensors[static_cast<size_t>(index)]; }
};

// True if the delegate claims a node of an Int8Graph after `change` has modified the graph.
bool ClaimsInt8(size_t node, const std::function<void(Graph&, Int8Tensors&)>& change) {
  Graph graph = Int8Graph({});
  Int8Tensors tensors(&graph);
  change(graph, tensors);
  return PlanOf(graph).Claims(node);
}

TEST(Claim, Int8OpsWithEveryActivationAndPadding) {
  for (int activation = kTfLiteActNone; activation <= kTfLiteActRelu6; ++activation) {
    for (const bool same : {false, true}) {
      for (int channels = 1; channels <= 4; ++channels) {
        for (const bool takes_maximum : {false, true}) {
          Int8Params params;
          params.image = {2, 6, 5, channels};
          params.same = params.has_bias = params.by_channel = same;
          params.takes_maximum = takes_maximum;
          params.activation = activation;
          EXPECT_EQ(PlanOf(Int8Graph(params)).Claimed(), (Indices{0, 1, 2, 3, 4})) << activation << channels;
        }
      }
    }
  }
}

TEST(Claim, Int8ConvolutionsOfFewChannelsInEachGroup) {
  const auto claims = [](int group_channels, int groups, int outputs) {
    Int8Params params;
    params.image = {2, 6, 5, group_channels};
    params.channels = outputs;
    Graph graph = Int8Graph(params);
    Int8Tensors(&graph).input.shape[3] = groups * group_channels;
    return PlanOf(graph).Claims(0);
  };
  EXPECT_TRUE(claims(4, 10, 40));
  EXPECT_TRUE(claims(8, 2, 40));
  EXPECT_FALSE(claims(8, 3, 40));
  EXPECT_FALSE(claims(9, 2, 40));
  EXPECT_FALSE(claims(3, 2, 40));
  EXPECT_FALSE(claims(1, 40, 40));
}

TEST(Claim, NoInt8ConvolutionOfWrongNumbers) {
  const auto claims = [](const std::function<void(Graph&, Int8Tensors&)>& change) { return ClaimsInt8(0, change); };
  constexpr float kScales[] = {0.0f, -1.0f, 3e38f, std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN()};
  constexpr int kMost = std::numeric_limits<int>::max(), kLeast = std::numeric_limits<int>::min();
  EXPECT_TRUE(claims([](Graph&, Int8Tensors&) {}));
  for (const float scale : kScales) {
    EXPECT_FALSE(claims([=](Graph&, Int8Tensors& t) { t.filter.grids.scales.back() = scale; })) << scale;
    EXPECT_FALSE(claims([=](Graph&, Int8Tensors& t) { t.filter.grids.scales = {scale}; })) << scale;
    EXPECT_FALSE(claims([=](Graph&, Int8Tensors& t) { t.input.quantization.scale = scale; })) << scale;
    if (scale < 1e38f) {
      EXPECT_FALSE(claims([=](Graph&, Int8Tensors& t) { t.stem.quantization.scale = scale; })) << scale;
    }
  }
  for (const int zero_point : {-129, 128, kMost, kLeast}) {
    EXPECT_FALSE(claims([=](Graph&, Int8Tensors& t) { t.input.quantization.zero_point = zero_point; })) << zero_point;
    EXPECT_FALSE(claims([=](Graph&, Int8Tensors& t) { t.stem.quantization.zero_point = zero_point; })) << zero_point;
    EXPECT_FALSE(claims([=](Graph&, Int8Tensors& t) { t.filter.grids.zero_points.back() = zero_point; })) << zero_point;
  }
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.filter.grids.zero_points[0] = 1; }));
  // The filter's array of scales or zero points in each of the following graphs is missing, has a wrong length, or
  // belongs to another dimension.
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.filter.grids.scales.clear(); }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.filter.grids.zero_points.clear(); }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.filter.grids = {}; }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.filter.grids.scales.pop_back(); }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.filter.grids.scales.push_back(0.01f); }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.filter.grids.dimension = 3; }));
  // The members of a CONV_2D's options are padding, stride width and height, activation, dilation width and height.
  for (const size_t member : {0u, 1u, 2u, 3u, 4u, 5u}) {
    for (const int value : {-1, 0, 4, kMost, kLeast}) {
      const bool is_valid = (member == 3 && value == 0) || ((member == 1 || member == 2) && value > 0);
      EXPECT_EQ(claims([=](Graph& graph, Int8Tensors&) { graph.nodes[0].builtin[member] = value; }), is_valid)
          << member << " " << value;
    }
  }
  // In each of the following graphs, a different dimension of the filter has an invalid size.
  for (const size_t axis : {0u, 1u, 2u, 3u}) {
    for (const int size : {-1, 0, 5, 41, kMost, kLeast}) {
      EXPECT_FALSE(claims([=](Graph&, Int8Tensors& t) { t.filter.shape[axis] = size; })) << axis << " " << size;
    }
  }
  EXPECT_FALSE(claims([=](Graph&, Int8Tensors& t) { t.filter.shape.assign(4, kMost); }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.filter.shape.pop_back(); }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.input.shape.pop_back(); }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.input.shape[3] = 4; }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.input.type = kTfLiteUInt8; }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.filter.type = kTfLiteInt32; }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.stem.type = kTfLiteFloat32; }));
  // The constant filter or bias in each of the following graphs is missing, cut off, misaligned or too large, or has
  // the weight -128.
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.filter.constant.clear(); }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.filter.constant.pop_back(); }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.filter.constant.back() = 0x80; }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.bias.constant.clear(); }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.bias.constant.pop_back(); }));
  EXPECT_FALSE(claims(
      [](Graph&, Int8Tensors& t) { t.bias.constant.insert(t.bias.constant.end(), 4, 0), t.bias.misaligned = true; }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { --t.bias.shape[0]; }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.bias.shape = {kMost, kMost}; }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.bias.type = kTfLiteInt64; }));
  for (const int last : {0x7F, 0x80, 0x20, 0xE0}) {
    EXPECT_FALSE(claims([=](Graph&, Int8Tensors& t) { t.bias.constant.back() = static_cast<uint8_t>(last); })) << last;
  }
  // The bias of a CONV_2D is optional; the other inputs and the output are required.
  EXPECT_TRUE(claims([](Graph& graph, Int8Tensors&) { graph.nodes[0].inputs.pop_back(); }));
  EXPECT_TRUE(claims([](Graph& graph, Int8Tensors&) { graph.nodes[0].inputs[2] = kOptionalTensor; }));
  for (const size_t position : {0u, 1u}) {
    EXPECT_FALSE(claims([=](Graph& graph, Int8Tensors&) { graph.nodes[0].inputs[position] = kOptionalTensor; }));
  }
  for (const int tensor : {-2, 1000, kMost, kLeast}) {
    EXPECT_FALSE(claims([=](Graph& graph, Int8Tensors&) { graph.nodes[0].inputs[2] = tensor; })) << tensor;
    EXPECT_FALSE(claims([=](Graph& graph, Int8Tensors&) { graph.nodes[0].outputs[0] = tensor; })) << tensor;
  }
  EXPECT_FALSE(claims([](Graph& graph, Int8Tensors&) { graph.nodes[0].inputs.resize(1); }));
  EXPECT_FALSE(claims([](Graph& graph, Int8Tensors&) { graph.nodes[0].inputs.push_back(0); }));
  EXPECT_FALSE(claims([](Graph& graph, Int8Tensors&) { graph.nodes[0].outputs.clear(); }));
}

TEST(Claim, NoInt8SumOfAConvolutionThatIsReadTwice) {
  Graph graph = Int8Graph({});
  const int convolved = graph.nodes[2].outputs[0];
  EXPECT_TRUE(PlanOf(graph).Claims(3));
  Graph doubled = graph;
  doubled.nodes[3].inputs = {convolved, convolved};
  EXPECT_FALSE(PlanOf(doubled).Claims(3));
  graph.nodes.push_back({"Other", {convolved}, {graph.inputs[0]}, {}, {}});
  EXPECT_FALSE(PlanOf(graph).Claims(3));
  // The sum is fused with the other convolution, whose output only the sum reads.
  graph.nodes.insert(graph.nodes.begin() + 3, graph.nodes[2]);
  graph.tensors.push_back(GraphTensor(graph.tensors[static_cast<size_t>(convolved)]));
  const int other = static_cast<int>(graph.tensors.size()) - 1;
  graph.nodes[3].outputs = {other};
  graph.nodes[4].inputs = {convolved, other};
  EXPECT_TRUE(PlanOf(graph).Claims(4));
}

TEST(Claim, NoInt8SumOfWrongNumbers) {
  const auto claims = [](const std::function<void(Graph&, Int8Tensors&)>& change) { return ClaimsInt8(3, change); };
  constexpr int kMost = std::numeric_limits<int>::max(), kLeast = std::numeric_limits<int>::min();
  EXPECT_TRUE(claims([](Graph&, Int8Tensors&) {}));
  for (const float scale : {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    EXPECT_FALSE(claims([=](Graph&, Int8Tensors& t) { t.stem.quantization.scale = scale; })) << scale;
    EXPECT_FALSE(claims([=](Graph&, Int8Tensors& t) { t.convolved.quantization.scale = scale; })) << scale;
    EXPECT_FALSE(claims([=](Graph&, Int8Tensors& t) { t.sum.quantization.scale = scale; })) << scale;
  }
  // In each of the following graphs, the ratio of two scales is too large for the fixed-point numbers.
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.convolved.quantization.scale = 3e38f; }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.sum.quantization.scale = 1e-40f; }));
  for (const int value : {-129, 128, kMost, kLeast}) {
    EXPECT_FALSE(claims([=](Graph&, Int8Tensors& t) { t.stem.quantization.zero_point = value; })) << value;
    EXPECT_FALSE(claims([=](Graph&, Int8Tensors& t) { t.sum.quantization.zero_point = value; })) << value;
  }
  for (const int value : {-1, 4, kMost, kLeast}) {
    EXPECT_FALSE(claims([=](Graph& graph, Int8Tensors&) { graph.nodes[3].builtin[0] = value; })) << value;
  }
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.stem.shape[3] = 39; }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.stem.shape.pop_back(); }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.stem.constant = {0}; }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.sum.type = kTfLiteFloat32; }));
}

TEST(Claim, Int8NormsThatOnlySignsRead) {
  EXPECT_EQ(PlanOf(Int8NormGraph({})).Claimed(), (Indices{0, 1, 2}));
  Int8NormParams params;
  params.adds = false;
  EXPECT_EQ(PlanOf(Int8NormGraph(params)).Claimed(), (Indices{0, 1}));
  for (const int channels : {4096, 4097}) {
    Int8NormParams wide;
    wide.image = {1, 1, 1, channels};
    EXPECT_EQ(PlanOf(Int8NormGraph(wide)).Claimed(), channels == 4096 ? (Indices{0, 1, 2}) : (Indices{2})) << channels;
  }
  // In each of the following graphs, another node also reads the output of an int8 batch norm's MUL or ADD. The
  // delegate then claims neither the op that writes this output, nor an op before it.
  for (const size_t node : {0u, 1u}) {
    Graph graph = Int8NormGraph({});
    graph.nodes.push_back({"Other", {graph.nodes[node].outputs[0]}, {graph.inputs[0]}, {}, {}});
    EXPECT_EQ(PlanOf(graph).Claimed(), node == 0 ? (Indices{1, 2}) : (Indices{2})) << node;
  }
}

TEST(Claim, NoInt8NormOfWrongNumbers) {
  const Graph whole = Int8NormGraph({});
  for (const size_t node : {0u, 1u}) {
    const auto claims = [&](const std::function<void(Graph&)>& change) {
      Graph graph = whole;
      change(graph);
      return PlanOf(graph).Claims(node);
    };
    const std::vector<int> tensors = {whole.nodes[node].inputs[0], whole.nodes[node].inputs[1],
                                      whole.nodes[node].outputs[0]};
    ASSERT_TRUE(claims([](Graph&) {}));
    for (const int index : tensors) {
      const auto tensor = [index](Graph& graph) -> GraphTensor& { return graph.tensors[static_cast<size_t>(index)]; };
      for (const float scale : {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
        EXPECT_FALSE(claims([=](Graph& graph) { tensor(graph).quantization.scale = scale; })) << index << " " << scale;
      }
      for (const int zero_point : {-129, 128}) {
        EXPECT_FALSE(claims([=](Graph& graph) { tensor(graph).quantization.zero_point = zero_point; })) << index;
      }
      EXPECT_FALSE(claims([=](Graph& graph) { tensor(graph).type = kTfLiteFloat32; })) << index;
    }
    const auto tensor = [&](Graph& graph, size_t i) -> GraphTensor& {
      return graph.tensors[static_cast<size_t>(tensors[i])];
    };
    // If the result's scale is tiny, the factor of the sum or product is too large for the runtime's fixed-point
    // numbers.
    EXPECT_FALSE(claims([=](Graph& graph) { tensor(graph, 2).quantization.scale = 1e-9f; }));
    EXPECT_FALSE(claims([=](Graph& graph) { tensor(graph, 1).constant.clear(); }));
    EXPECT_FALSE(claims([=](Graph& graph) { tensor(graph, 1).shape = {39}; }));
    EXPECT_FALSE(claims([=](Graph& graph) { tensor(graph, 0).constant = {0}; }));
    EXPECT_FALSE(claims([=](Graph& graph) { graph.nodes[node].builtin[0] = kTfLiteActRelu; }));
    EXPECT_FALSE(claims([=](Graph& graph) { graph.nodes[node].inputs.pop_back(); }));
    EXPECT_FALSE(claims([=](Graph& graph) { graph.nodes[node].inputs[1] = 1 << 24; }));
  }
}

class ClaimInt8Pool : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Ops, ClaimInt8Pool, ::testing::Values("AVERAGE_POOL_2D", "MAX_POOL_2D"),
                         [](const auto& op) { return op.param; });

TEST_P(ClaimInt8Pool, HasNoWrongNumbers) {
  const auto claims = [](const std::function<void(Graph&, Int8Tensors&)>& change) {
    return ClaimsInt8(4, [&](Graph& graph, Int8Tensors& tensors) {
      graph.nodes[4].op = GetParam();
      change(graph, tensors);
    });
  };
  constexpr int kMost = std::numeric_limits<int>::max(), kLeast = std::numeric_limits<int>::min();
  EXPECT_TRUE(claims([](Graph&, Int8Tensors&) {}));
  // The members of a pool's options are padding, stride width and height, filter width and height, activation.
  for (const size_t member : {0u, 1u, 2u, 3u, 4u, 5u}) {
    for (const int value : {-1, 0, 4, kMost, kLeast}) {
      const bool is_stride = member == 1 || member == 2, is_filter = member == 3 || member == 4;
      const bool is_valid = (member == 5 && value == 0) || (is_stride && value > 0) || (is_filter && value == 4);
      EXPECT_EQ(claims([=](Graph& graph, Int8Tensors&) { graph.nodes[4].builtin[member] = value; }), is_valid)
          << member << " " << value;
    }
  }
  EXPECT_FALSE(
      claims([](Graph& graph, Int8Tensors&) { graph.nodes[4].builtin[3] = graph.nodes[4].builtin[4] = kMost; }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.pooled.quantization.zero_point += 1; }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.pooled.quantization.scale *= 2; }));
  EXPECT_FALSE(
      claims([](Graph&, Int8Tensors& t) { t.sum.quantization.scale = t.pooled.quantization.scale = std::nanf(""); }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.pooled.type = kTfLiteFloat32; }));
  EXPECT_FALSE(claims([](Graph&, Int8Tensors& t) { t.pooled.shape.pop_back(); }));
}

}  // namespace
}  // namespace litebnn::testing
