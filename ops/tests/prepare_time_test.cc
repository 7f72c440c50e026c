// Tests of small models that could take long, or much memory, to prepare. The cost must be linear in the size of the
// model and of its tensors. Each of these models once took many seconds or gigabytes.
#include <gtest/gtest.h>
#include <time.h>

#include <utility>

#include "tests/support/delegates.h"
#include "tests/support/graphs.h"
#include "tests/support/plan.h"
#include "tflite/ops/contract.h"
#include "tflite/ops/op_list.h"
#include "tflite/partition/claim.h"
#include "tflite/partition/stages.h"

namespace litebnn::testing {
namespace {

double SecondsOfProcess() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The time limit for preparing a model. Slow and busy machines take up to 2.3 s.
constexpr double kSeconds = 5;

template <typename Body>
void ExpectSoon(Body body) {
  const double begin = SecondsOfProcess();
  body();
  EXPECT_LT(SecondsOfProcess() - begin, kSeconds);
}

void ExpectPreparedSoon(const Graph& graph) {
  ExpectSoon([&] {
    FakeRuntime custom(graph);
    EXPECT_TRUE(custom.Allocate() || !custom.errors().empty());
  });
  ExpectSoon([&] {
    const DelegatePointer delegate = MakeDelegate();
    FakeRuntime delegated(graph, delegate.get(), 1000);
    EXPECT_TRUE(delegated.Allocate() || !delegated.errors().empty());
  });
}

// Returns the graph with `count` more copies of its first node, each with an output of its own.
Graph Repeat(Graph graph, int count) {
  const GraphNode node = graph.nodes[0];
  for (int i = 0; i < count; ++i) {
    graph.tensors.push_back(graph.tensors[static_cast<size_t>(node.outputs[0])]);
    graph.nodes.push_back(node);
    graph.nodes.back().outputs = {static_cast<int>(graph.tensors.size()) - 1};
  }
  return graph;
}

ConvParams SameZero(int filter_height, int filter_width) {
  ConvParams params;
  params.filter_height = params.height = filter_height;
  params.filter_width = params.width = filter_width;
  params.channels_in = 32;
  params.channels_out = 1;
  params.changed = {{contract::kPadValues, contract::kPadValuesZero}};
  return params;
}

TEST(PrepareTime, OfSameZeroFiltersAsLargeAsTheirInput) {
  ExpectPreparedSoon(ConvGraph(SameZero(300, 300)));
  ExpectPreparedSoon(ConvGraph(SameZero(1, 60000)));
  ExpectPreparedSoon(ConvGraph(SameZero(60000, 1)));
}

TEST(PrepareTime, OfSameZeroFiltersOfManyGroups) {
  ConvParams params = SameZero(3, 3);
  params.height = params.width = 8;
  params.groups = params.channels_out = 20000;
  params.channels_in = 32 * params.groups;
  ExpectPreparedSoon(ConvGraph(params));
}

TEST(PrepareTime, OfLargeDilations) {
  ConvParams params;
  params.height = params.width = 1;
  params.channels_in = 32;
  params.channels_out = 1;
  params.changed = {{contract::kDilationHeightFactor, 8000}, {contract::kDilationWidthFactor, 8000}};
  // The padded input image of each layer takes a gigabyte, to which nothing may be written before the model runs.
  ExpectPreparedSoon(Repeat(ConvGraph(params), 30));
}

TEST(PrepareTime, OfOptionsWithManyKeys) {
  Options options = DefaultConvOptions({});
  for (int i = 0; i < 20000; ++i) options["a" + std::to_string(i)] = 1;
  Graph graph = ConvGraph({});
  graph.nodes[0].options = EncodeOptions(options);
  // Several nodes of a model file may share their options.
  ExpectPreparedSoon(Repeat(graph, 100));
}

TEST(PrepareTime, OfFiltersThatManyNodesShare) {
  ConvParams params;
  params.height = params.width = 1;
  params.channels_in = 4096;
  params.channels_out = 1000;
  params.filter_height = params.filter_width = 1;
  ExpectPreparedSoon(Repeat(ConvGraph(params), 4000));
}

// A graph of one int8 CONV_2D, whose filter has channels * size * size * 4 weights.
Graph StemGraph(int channels, int size) {
  Int8Params params;
  params.image = {1, 1, 1, 4};
  params.channels = channels;
  params.filter = size;
  Graph graph = Int8Graph(params);
  graph.nodes.resize(1);
  graph.outputs = graph.nodes[0].outputs;
  return graph;
}

TEST(PrepareTime, OfInt8FiltersThatManyNodesShare) {
  for (const auto& [channels, size] : {std::pair{2000, 8}, {1000, 4}, {16, 32}}) {
    const Graph graph = Repeat(StemGraph(channels, size), 4000);
    ExpectSoon([&graph = graph] {
      const DelegatePointer delegate = MakeDelegate();
      FakeRuntime delegated(graph, delegate.get(), 1000);
      EXPECT_TRUE(delegated.Allocate() || !delegated.errors().empty());
    });
  }
}

TEST(PrepareTime, OfManyInt8Sums) {
  Graph graph = Int8Graph({});
  const GraphNode convolution = graph.nodes[2], sum = graph.nodes[3];
  for (int i = 0; i < 1000; ++i) {
    const auto copy = [&](const GraphNode& node) {
      graph.tensors.push_back(graph.tensors[static_cast<size_t>(node.outputs[0])]);
      graph.nodes.push_back(node);
      graph.nodes.back().outputs = {static_cast<int>(graph.tensors.size()) - 1};
      return graph.nodes.back().outputs[0];
    };
    const int convolved = copy(convolution);
    graph.outputs.push_back(copy(sum));
    for (int& input : graph.nodes.back().inputs) input = input == convolution.outputs[0] ? convolved : input;
  }
  // An output scale twice that of the operands puts half of all sums exactly halfway between two int8 values. Computing
  // the ADD in floats then needs the most corrections of single results.
  for (const GraphNode& node : graph.nodes) {
    for (int output : node.outputs) {
      GraphTensor& tensor = graph.tensors[static_cast<size_t>(output)];
      if (tensor.type == kTfLiteInt8) tensor.quantization.scale = node.op == "ADD" ? 1.0f : 0.5f;
    }
  }
  ExpectPreparedSoon(graph);
}

TEST(PrepareTime, OfInt8NormsThatShareTheirConstants) {
  for (const int channels : {1 << 12, 1 << 16}) {
    Int8NormParams params;
    params.image = {1, 1, 1, channels};
    Graph graph = Int8NormGraph(params);
    const std::vector<GraphNode> norm = graph.nodes;
    for (int i = 0; i < 1000; ++i) {
      int image = graph.inputs[0];
      for (GraphNode node : norm) {
        node.inputs[0] = image;
        image = static_cast<int>(graph.tensors.size());
        graph.tensors.push_back(graph.tensors[static_cast<size_t>(node.outputs[0])]);
        node.outputs = {image};
        graph.nodes.push_back(node);
      }
    }
    ExpectPreparedSoon(graph);
  }
}

TEST(PrepareTime, OfCorrectionsThatManyNodesMakeFromOneFilter) {
  ExpectPreparedSoon(Repeat(ConvGraph(SameZero(490, 490)), 31));
  // Each group has one output channel, so each group's filter is padded to a whole tile of channels when it is packed.
  ConvParams params = SameZero(16, 16);
  params.height = params.width = 31;
  params.groups = params.channels_out = 800;
  params.channels_in = 32 * params.groups;
  ExpectPreparedSoon(Repeat(ConvGraph(params), 35));
}

TEST(PrepareTime, OfManyWideImagesThatArePaddedWithZeros) {
  ConvParams params = SameZero(1, 2);
  params.width = 1 << 22;
  Graph graph = Repeat(ConvGraph(params), 100);
  // All nodes write the same output tensor, so the runtime allocates its memory once.
  for (GraphNode& node : graph.nodes) node.outputs = graph.nodes[0].outputs;
  ExpectPreparedSoon(graph);
}

TEST(PrepareTime, OfTensorsWithManyDimensions) {
  Graph graph = QuantizeGraph(std::vector<int>(100000, 1), kTfLiteFloat32);
  graph.nodes.resize(3000, graph.nodes[0]);
  ExpectPreparedSoon(graph);
}

TEST(PrepareTime, OfManyNodes) {
  Graph graph = QuantizeGraph({1, 1}, kTfLiteFloat32);
  graph.nodes.resize(30000, graph.nodes[0]);
  ExpectPreparedSoon(graph);
}

TEST(PrepareTime, OfNodesThatShareManyParts) {
  // Several nodes of a model file may share the list of their inputs.
  constexpr int kNodes = 12000, kSlices = 256;
  Graph graph = QuantizeGraph({1, 1, 1, 32}, kTfLiteFloat32);
  const std::vector<int> slices(kSlices, graph.nodes[0].outputs[0]);
  for (int i = 0; i < kNodes; ++i) {
    graph.tensors.push_back({kTfLiteInt32, {1, 1, 1, kSlices}, {}, {}});
    graph.nodes.push_back({"CONCATENATION", slices, {static_cast<int>(graph.tensors.size()) - 1}, {}, {3, 0}});
  }
  ExpectSoon([&] {
    const DelegatePointer delegate = MakeDelegate();
    FakeRuntime delegated(graph, delegate.get(), graph.nodes.size());
    EXPECT_TRUE(delegated.Allocate()) << delegated.errors();
  });
}

TEST(PrepareTime, OfPackingsThatArePutSideBySideAgainAndAgain) {
  constexpr int kWholes = 12000;
  std::vector<Step> steps;
  const auto add = [&](const OpType& type, const std::vector<int>& inputs, int output) {
    steps.push_back({&type, 0, {}, {{output}}, nullptr, 0, nullptr});
    for (int tensor : inputs) steps.back().inputs.push_back({tensor});
  };
  add(kAffineQuantizeOpType, {0, 1, 2}, 3);
  for (int i = 0; i < kWholes; ++i) {
    const int whole = 3 + 2 * i;
    add(kAffineQuantizeOpType, {0, 1, 2}, whole + 1);
    add(kConcatenationOpType, {whole + 1, whole}, whole + 2);
  }
  ExpectSoon([&] { FusePackings({3 + 2 * kWholes}, &steps); });
}

TEST(PrepareTime, OfGatesOfManyChannels) {
  constexpr int kSlices = 256, kChannels = 1 << 22;
  Graph graph;
  const auto add = [&graph](TfLiteType type, int channels) {
    graph.tensors.push_back({type, {1, 1, 1, channels}, {}, {}});
    return static_cast<int>(graph.tensors.size()) - 1;
  };
  const int bits = add(kTfLiteInt32, kChannels / 32), slice = add(kTfLiteFloat32, kChannels);
  // The model declares small shapes. When the model is prepared, its tensors become much larger.
  const int whole = add(kTfLiteFloat32, 32), product = add(kTfLiteFloat32, 32), packed = add(kTfLiteInt32, 1);
  graph.nodes.push_back({contract::kDequantize, {bits}, {slice}, {}, {}});
  graph.nodes.push_back({"CONCATENATION", std::vector<int>(kSlices, slice), {whole}, {}, {3, kTfLiteActNone}});
  graph.nodes.push_back({"MUL", {whole, whole}, {product}, {}, {kTfLiteActNone}});
  graph.nodes.push_back({contract::kQuantize, {product}, {packed}, {}, {}});
  graph.inputs = {bits};
  graph.outputs = {packed};
  ExpectSoon([&] {
    const DelegatePointer delegate = MakeDelegate();
    FakeRuntime delegated(graph, delegate.get(), graph.nodes.size());
    EXPECT_FALSE(delegated.Allocate());
    EXPECT_NE(
        delegated.errors().find("MUL, node 2: output (tensor 3 'a tensor'): shape: expected at most 1048576 channels"),
        std::string::npos)
        << delegated.errors();
  });
}

TEST(PrepareTime, OfNodesThatShareManyInputs) {
  std::vector<int> inputs(100001, 0), outputs = {0};
  inputs[0] = 100000;
  std::vector<TfLiteTensor> tensors(2);
  TfLiteContext context = {};
  context.tensors = tensors.data();
  context.tensors_size = tensors.size();
  // The vectors `inputs` and `outputs` have the layout of a TfLiteIntArray: a length, followed by the values.
  TfLiteNode node = {};
  node.inputs = reinterpret_cast<TfLiteIntArray*>(inputs.data());
  node.outputs = reinterpret_cast<TfLiteIntArray*>(outputs.data());
  TfLiteRegistration registration = {};
  const std::vector<PlannedNode> plan(2000, {0, &node, &registration});
  ExpectSoon([&] {
    for (const Claim& claim : ClaimNodes(context, plan)) EXPECT_FALSE(claim.is_claimed());
    EXPECT_TRUE(CheckOrder(&context, plan));
  });
}

TEST(PrepareTime, OfAnArenaForManyTensors) {
  constexpr int kTensors = 60000;
  for (const bool all_at_once : {true, false}) {
    std::vector<ArenaBuffer> buffers;
    for (int i = 0; i < kTensors; ++i) {
      const auto bytes = static_cast<size_t>(64 * (1 + i % 100));
      buffers.push_back({bytes, i, all_at_once ? kTensors + i : i + 1, 0});
    }
    size_t bytes = 0;
    ExpectSoon([&] { EXPECT_TRUE(PlanArena(&buffers, &bytes)); });
  }
}

TEST(PrepareTime, OfManyBatchNorms) {
  std::vector<Step> steps;
  for (int i = 0; i < 20000; ++i) {
    steps.push_back({&kScaleOpType, 0, {{0}, {1}}, {{3 * i + 2}}, nullptr, 0, nullptr});
    steps.push_back({&kShiftOpType, 0, {{3 * i + 2}, {1}}, {{3 * i + 3}}, nullptr, 0, nullptr});
    steps.push_back({&kQuantizeOpType, 0, {{3 * i + 3}}, {{3 * i + 4}}, nullptr, 0, nullptr});
  }
  ExpectSoon([&] { FuseBatchNorms({60001}, &steps); });
  EXPECT_EQ(steps.size(), 20000u);
}

TEST(PrepareTime, OfManyAdditions) {
  const TfLiteAddParams none = {kTfLiteActNone};
  std::vector<Step> steps;
  for (int i = 0; i < 20000; ++i) {
    steps.push_back({&kBconv2dOpType, 0, {{0}, {1}}, {{2 * i + 2}}, nullptr, 0, nullptr});
    steps.push_back({&kAddOpType, 0, {{2 * i + 2}, {2 * i + 1}}, {{2 * i + 3}}, nullptr, 0, &none});
  }
  ExpectSoon([&] { FuseConvolutions({40001}, &steps); });
  EXPECT_EQ(steps.size(), 20000u);
}

TEST(PrepareTime, OfNodesThatAreDelayed) {
  // Claimed nodes and other nodes alternate. Each partition has a node whose output only the next partition reads, so
  // the node is delayed.
  Plan plan;
  std::vector<int> claimed;
  for (int image = plan.AddTensor({1, 1, 1, 32}), node = 0; node < 120000; node += 4) {
    const int packed = plan.AddTensor({1, 1, 1, 1}), convolved = plan.AddTensor({1, 1, 1, 32});
    const int shortcut = plan.AddTensor({1, 1, 1, 32}), sum = plan.AddTensor({1, 1, 1, 32});
    plan.AddNode(kTfLiteBuiltinCustom, {image}, {packed});
    plan.AddNode(kTfLiteBuiltinCustom, {packed}, {convolved});
    plan.AddNode(kTfLiteBuiltinSub, {image}, {shortcut});
    plan.AddNode(kTfLiteBuiltinAdd, {convolved, shortcut}, {sum});
    claimed.insert(claimed.end(), {node, node + 1, node + 3});
    image = sum;
  }
  const std::vector<Claim> claims = ClaimsOf(plan, claimed);
  ExpectSoon([&] { EXPECT_EQ(DelayNodes(plan.context(), plan.nodes(), claims).size(), 2u); });
}

}  // namespace
}  // namespace litebnn::testing
