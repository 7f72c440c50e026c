#include "tflite/partition/claim.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/support/fake_builtins.h"
#include "tests/support/graphs.h"

namespace litebnn::testing {
namespace {

// The execution plan of a graph that no interpreter runs.
class PlanOf {
 public:
  explicit PlanOf(const Graph& graph) : graph_(graph), tensors_(graph.tensors.size()) {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const GraphTensor& described = graph_.tensors[i];
      tensors_[i] = {};
      tensors_[i].type = described.type;
      tensors_[i].dims = NewArray(described.shape);
      tensors_[i].allocation_type = described.constant.empty() ? kTfLiteArenaRw : kTfLiteMmapRo;
    }
    context_.tensors = tensors_.data();
    context_.tensors_size = tensors_.size();
    nodes_.resize(graph_.nodes.size());
    registrations_.resize(graph_.nodes.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const GraphNode& described = graph_.nodes[i];
      nodes_[i] = {};
      nodes_[i].inputs = NewArray(described.inputs);
      nodes_[i].outputs = NewArray(described.outputs);
      registrations_[i] = {};
      if (FindFakeBuiltin(described.op, &registrations_[i])) {
        nodes_[i].builtin_data = const_cast<int*>(described.builtin.data());
      } else {
        registrations_[i].builtin_code = kTfLiteBuiltinCustom;
        registrations_[i].custom_name = described.op.c_str();
      }
      plan_.push_back({static_cast<int>(i), &nodes_[i], &registrations_[i]});
    }
  }

  // Gives a node the name that another delegate's kernel has, which may have the code of a builtin op.
  void NameNode(size_t index) { registrations_[index].custom_name = "SomeDelegate"; }

  std::vector<int> Claimed() const { return ClaimNodes(context_, plan_); }

 private:
  TfLiteIntArray* NewArray(const std::vector<int>& values) {
    arrays_.emplace_back(MakeArray(values), std::free);
    return arrays_.back().get();
  }

  const Graph graph_;
  TfLiteContext context_ = {};
  std::vector<TfLiteTensor> tensors_;
  std::vector<TfLiteNode> nodes_;
  std::vector<TfLiteRegistration> registrations_;
  std::vector<std::unique_ptr<TfLiteIntArray, void (*)(void*)>> arrays_;
  std::vector<PlannedNode> plan_;
};

using Indices = std::vector<int>;

TEST(Claim, EveryCustomOp) { EXPECT_EQ(PlanOf(ChainGraph(1)).Claimed(), (Indices{0, 1, 2, 3, 4, 5})); }

TEST(Claim, NoCustomOpOfOthers) {
  Graph graph = ChainGraph(1);
  graph.nodes[2].op = "LceBMaxPool3d";
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0, 1, 3, 4, 5}));
  // No model has the op that fusing makes.
  graph.nodes[2].op = "LceBconv2d with ADD";
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0, 1, 3, 4, 5}));
}

TEST(Claim, AdditionsAndPoolsOfWhatIsClaimed) {
  EXPECT_EQ(PlanOf(ResidualGraph(2)).Claimed(), (Indices{0, 1, 2, 3, 4, 5}));
  const std::vector<int> pool = {kTfLitePaddingSame, 2, 2, 3, 3, kTfLiteActNone};
  EXPECT_EQ(PlanOf(PooledGraph({1, 7, 7, 40}, pool, pool)).Claimed(), (Indices{0, 1, 2, 3}));
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
  graph.tensors[multiplier].shape = {64, 1};
  EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{1, 2, 3, 4, 5, 6, 7}));
}

TEST(Claim, ConcatenationsOfWordsOnly) {
  for (const std::vector<int>& options : {std::vector<int>{2, 0}, {3, 1}}) {
    Graph graph = BatchNormGraph(64, 64, false);
    graph.nodes[6].builtin = options;
    EXPECT_EQ(PlanOf(graph).Claimed(), (Indices{0, 1, 2, 3, 4, 5, 7}));
  }
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
  // An addition is taken with a convolution only, a pool with anything.
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

}  // namespace
}  // namespace litebnn::testing
