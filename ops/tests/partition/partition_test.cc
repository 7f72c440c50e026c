// Runs whole graphs in the fake runtime: the bits of the outputs must not depend on the partitions.
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/delegates.h"
#include "tests/support/graphs.h"
#include "tflite/ops/contract.h"

namespace litebnn::testing {
namespace {

class Graphs : public ::testing::TestWithParam<uint32_t> {};

std::vector<uint8_t> RunOnce(FakeRuntime* runtime) {
  EXPECT_TRUE(runtime->Allocate()) << runtime->errors();
  runtime->FillInputs(9);
  EXPECT_TRUE(runtime->Invoke()) << runtime->errors();
  return runtime->Outputs();
}

TEST_P(Graphs, GiveTheSameBitsHoweverTheyAreRun) {
  std::mt19937 random(GetParam());
  const Graph graph = RandomGraph(std::ref(random));
  FakeRuntime custom(graph);
  const std::vector<uint8_t> expected = RunOnce(&custom);
  for (const char* threads : {"1", "3"}) {
    for (size_t partition_size : {1u, 2u, 100u}) {
      const DelegatePointer delegate = MakeDelegate({{"num_threads", threads}});
      FakeRuntime delegated(graph, delegate.get(), partition_size);
      EXPECT_EQ(RunOnce(&delegated), expected) << threads << " threads, partitions of " << partition_size;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Random, Graphs, ::testing::Range(0u, 200u));

TEST(Memory, OfTensorsInsideAPartitionIsNotTheRuntimes) {
  const Graph graph = ChainGraph(2);
  const DelegatePointer delegate = MakeDelegate();
  FakeRuntime runtime(graph, delegate.get(), 100);
  RunOnce(&runtime);
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const int tensor = static_cast<int>(i);
    const bool is_read = tensor == graph.inputs[0] || tensor == graph.outputs[0] || !graph.tensors[i].constant.empty();
    EXPECT_EQ(runtime.tensor(tensor).bytes > 0, is_read) << tensor;
  }
}

TEST(Memory, OfAConvolutionThatWaitsForItsAdditionIsNotTheRuntimes) {
  const Graph graph = ResidualGraph(2, 5, 40, 0, /*doubles=*/true);
  const DelegatePointer delegate = MakeDelegate();
  FakeRuntime runtime(graph, delegate.get(), 100);
  RunOnce(&runtime);
  for (const GraphNode& node : graph.nodes) {
    // The runtime allocates the memory of packed signs, which are the inputs and outputs of the partition. The floats
    // between nodes are internal to the delegate, so the runtime does not allocate them.
    EXPECT_EQ(runtime.tensor(node.outputs[0]).bytes > 0, node.op != contract::kBconv2d) << node.op;
  }
}

TEST(Resize, GivesWhatAModelOfThatSizeGives) {
  const std::vector<int> sizes = {9, 14, 3, 9};
  const DelegatePointer delegate = MakeDelegate();
  FakeRuntime custom(ChainGraph(2)), delegated(ChainGraph(2), delegate.get(), 100);
  for (int size : sizes) {
    FakeRuntime fresh(ChainGraph(2, size));
    const std::vector<uint8_t> expected = RunOnce(&fresh);
    for (FakeRuntime* runtime : {&custom, &delegated}) {
      ASSERT_TRUE(runtime->Resize(0, {1, size, size, 70}));
      EXPECT_EQ(RunOnce(runtime), expected) << size;
    }
  }
}

TEST(Resize, OfAnAveragedBatchNormGivesWhatAModelOfThatSizeGives) {
  // After a resize, the pool covers a part of the image, or has several windows.
  const DelegatePointer delegate = MakeDelegate();
  FakeRuntime delegated(AveragedNormGraph({}), delegate.get(), 100);
  for (const std::vector<int>& image :
       {std::vector<int>{2, 3, 4, 40}, {1, 5, 7, 40}, {3, 6, 9, 40}, {1, 11, 4, 40}, {2, 3, 4, 40}}) {
    AveragedNormParams params;
    params.image = image;
    FakeRuntime fresh(AveragedNormGraph(params));
    const std::vector<uint8_t> expected = RunOnce(&fresh);
    ASSERT_TRUE(delegated.Resize(0, image));
    EXPECT_EQ(RunOnce(&delegated), expected) << image[1];
  }
}

TEST(Resize, ToAnotherNumberOfChannelsIsRefused) {
  FakeRuntime runtime(ConvGraph({}));
  ASSERT_TRUE(runtime.Allocate());
  ASSERT_TRUE(runtime.Resize(0, {1, 5, 6, 3}));
  EXPECT_FALSE(runtime.Allocate());
  EXPECT_NE(runtime.errors().find("last dimension: expected 2 words"), std::string::npos);
}

// A graph of one of the runtime's own ops, followed by a packing of signs in the delegate.
Graph BuiltinGraph(const std::string& op, const std::vector<std::vector<int>>& inputs,
                   const std::vector<int>& options) {
  Graph graph;
  for (const std::vector<int>& shape : inputs) {
    graph.inputs.push_back(static_cast<int>(graph.tensors.size()));
    graph.tensors.push_back({kTfLiteFloat32, shape, {}, {}});
  }
  const int result = static_cast<int>(graph.tensors.size()), packed = result + 1;
  graph.tensors.push_back({kTfLiteFloat32, inputs[0], {}, {}});
  graph.tensors.push_back({kTfLiteInt32, inputs[0], {}, {}});
  graph.outputs = {result, packed};
  graph.nodes.push_back({op, graph.inputs, {result}, {}, options, /*unclaimed=*/true});
  graph.nodes.push_back({contract::kQuantize, {result}, {packed}, {}, {}});
  return graph;
}

// Prepares a graph, modifies it by `change`, prepares it again, and returns the error.
template <typename Change>
std::string ErrorsAfter(const Graph& graph, Change change) {
  const DelegatePointer delegate = MakeDelegate();
  FakeRuntime runtime(graph, delegate.get(), 100);
  EXPECT_TRUE(runtime.Allocate()) << runtime.errors();
  change(&runtime);
  EXPECT_FALSE(runtime.Allocate());
  return runtime.errors();
}

std::string ErrorsAfterResize(const Graph& graph, int tensor, const std::vector<int>& shape) {
  return ErrorsAfter(graph, [&](FakeRuntime* runtime) { EXPECT_TRUE(runtime->Resize(tensor, shape)); });
}

std::string ErrorsOfInt8(const Graph& graph, int tensor) {
  return ErrorsAfter(
      graph, [tensor](FakeRuntime* runtime) { const_cast<TfLiteTensor&>(runtime->tensor(tensor)).type = kTfLiteInt8; });
}

void ExpectIn(const std::string& text, const std::string& message) {
  EXPECT_NE(text.find(message), std::string::npos) << text << "\nlacks: " << message;
}

TEST(Resize, OfTheRuntimesOwnOpsToWhatTheyDoNotComputeIsRefused) {
  const Graph pool = BuiltinGraph("MAX_POOL_2D", {{1, 7, 7, 40}}, {kTfLitePaddingSame, 2, 2, 3, 3, kTfLiteActNone});
  ExpectIn(ErrorsAfterResize(pool, 0, {7, 7, 40}),
           "litebnn: MAX_POOL_2D, node 0: input (tensor 0 'a tensor'): shape: expected 4 dimensions, found [7, 7, 40]");
  const Graph sum = BuiltinGraph("ADD", {{1, 5, 5, 40}, {1, 5, 5, 40}}, {kTfLiteActNone});
  ExpectIn(ErrorsAfterResize(sum, 0, {1, 4, 5, 40}),
           "litebnn: ADD, node 0: input 2 (tensor 1 'a tensor'): shape: expected one that goes with [1, 4, 5, 40]");
  for (const int tensor : {0, 1, 2}) {
    const std::string name = tensor == 2 ? "output" : "input " + std::to_string(tensor + 1);
    ExpectIn(ErrorsOfInt8(sum, tensor), "litebnn: ADD, node 0: " + name + " (tensor " + std::to_string(tensor) +
                                            " 'a tensor'): type: expected FLOAT32, found INT8");
  }
}

TEST(Resize, OfAnAddendToWhatDoesNotGoWithItsConvolutionIsRefused) {
  Graph graph = ResidualGraph(1);
  const int addend = static_cast<int>(graph.tensors.size());
  graph.tensors.push_back(graph.tensors[static_cast<size_t>(graph.inputs[0])]);
  graph.nodes[2].inputs[1] = addend;
  graph.inputs.push_back(addend);
  ExpectIn(ErrorsAfterResize(graph, addend, {1, 4, 5, 40}),
           "litebnn: LceBconv2d with ADD, node 1: addend (tensor " + std::to_string(addend) +
               " 'a tensor'): shape: expected one that goes with [1, 5, 5, 40], found [1, 4, 5, 40]");
}

TEST(Resize, OfOneOfTheImagesThatAreConcatenatedIsRefused) {
  const Graph graph = BatchNormGraph(64, 40, false);
  for (const std::vector<int>& shape : {std::vector<int>{2, 3, 5, 40}, {2, 2, 4, 40}, {1, 3, 4, 40}}) {
    ExpectIn(ErrorsAfterResize(graph, graph.inputs[1], shape),
             "litebnn: LceQuantize with MUL and ADD, node 6: input (tensor " + std::to_string(graph.inputs[1]) +
                 " 'a tensor'): shape: expected that of the first but for the last dimension, [2, 3, 4, 64], found ");
  }
}

TEST(Resize, OfABatchNormToAScalarIsRefused) {
  // The batch norm's result has another consumer, so the batch norm is not fused into the packing of signs.
  const Graph graph = BatchNormGraph(3, 40, true);
  ExpectIn(ErrorsAfterResize(graph, graph.inputs[0], {}),
           "litebnn: MUL with ADD, node 1: input (tensor 0 'a tensor'): shape: expected ");
}

TEST(Resize, OfAnAveragedBatchNormToOtherChannelsOrTypesIsRefused) {
  const Graph graph = AveragedNormGraph({});
  const std::string op = "litebnn: LceQuantize with AVERAGE_POOL_2D, MUL and ADD, node 2: ";
  ExpectIn(ErrorsAfterResize(graph, graph.inputs[0], {2, 3, 4, 41}), op + "multiplier (tensor ");
  ExpectIn(ErrorsAfterResize(graph, graph.inputs[0], {3, 4, 40}), op + "input (tensor ");
  ExpectIn(ErrorsAfterResize(graph, graph.inputs[0], {2, 2, 4, 40}), "height: expected at least 3, ");
  ExpectIn(ErrorsOfInt8(graph, graph.inputs[0]), op + "input (tensor ");
  ExpectIn(ErrorsOfInt8(graph, graph.outputs[0]), op + "output (tensor ");
  ExpectIn(ErrorsOfInt8(graph, graph.outputs[1]), op + "average: type: expected FLOAT32, found INT8");
}

TEST(Resize, OfAnInt8BatchNormToOtherChannelsOrAScalarIsRefused) {
  for (const auto& [reads_all, slices] : {std::pair{false, 1}, {true, 1}, {false, 2}, {true, 2}}) {
    Int8NormParams params;
    params.reads_all = reads_all;
    params.slices = slices;
    const Graph graph = Int8NormGraph(params);
    // The joined step is where the CONCATENATION was.
    const std::string op =
        reads_all ? "litebnn: MUL, node 0: "
                  : "litebnn: LceQuantize with int8 MUL and ADD, node " + std::string(slices == 1 ? "2" : "6") + ": ";
    ExpectIn(ErrorsAfterResize(graph, graph.inputs[0], {2, 3, 4, 41}), op + "multiplier (tensor ");
    ExpectIn(ErrorsAfterResize(graph, graph.inputs[0], {2, 3, 4, 41}), "expected a value for each of 41 channels, ");
    ExpectIn(ErrorsAfterResize(graph, graph.inputs[0], {}), op + "input (tensor ");
  }
}

TEST(Resize, OfATensorToAnotherTypeIsRefused) {
  const Graph graph = BatchNormGraph(64, 40, false);
  const int image = graph.inputs[0], words = graph.nodes[6].outputs[0];
  for (const int tensor : {image, words}) {
    ExpectIn(ErrorsOfInt8(graph, tensor), std::string("LceQuantize with MUL and ADD, node 6: ") +
                                              (tensor == image ? "input" : "output") + " (tensor " +
                                              std::to_string(tensor) + " 'a tensor'): type: expected " +
                                              (tensor == image ? "FLOAT32" : "INT32") + ", found INT8");
  }
}

TEST(Resize, OfAPartToOtherChannelsThanTheConstantsHaveIsRefused) {
  const Graph graph = JoinedGraph({});
  const std::string errors = ErrorsAfterResize(graph, graph.inputs[0], {1, 6, 6, 7});
  ExpectIn(errors, "litebnn: MAX_POOL_2D with MUL, ADD and RELU, node 4: ");
  ExpectIn(errors, "shape: expected a value for each of 50 channels, found [48]");
}

TEST(Resize, OfAnyOfManyPartsToAnotherTypeIsRefused) {
  JoinedParams params;
  params.multiplies = false;
  params.pool = {};
  params.activation = -1;
  Graph graph = JoinedGraph(params);
  for (int i = 0; i < 8; ++i) {
    const int slice = static_cast<int>(graph.tensors.size());
    graph.tensors.push_back(GraphTensor(graph.tensors[static_cast<size_t>(graph.inputs[0])]));
    graph.inputs.push_back(slice);
    graph.nodes[2].inputs.push_back(slice);
  }
  for (const int slice : {graph.nodes[2].inputs[3], graph.nodes[2].inputs.back()}) {
    ExpectIn(ErrorsOfInt8(graph, slice), "litebnn: CONCATENATION, node 2: input (tensor " + std::to_string(slice) +
                                             " 'a tensor'): type: expected FLOAT32, found INT8");
  }
}

void ExpectSameAfterResizes(const GatedParams& params) {
  struct Shapes {
    std::vector<int> words, gate, addend;
  };
  const int c = params.channels;
  const std::vector<int> words = {1, 5, 6, 2}, gate = {1, 1, 1, c}, image = {1, 5, 6, c};
  const Graph graph = GatedGraph(params);
  const DelegatePointer delegate = MakeDelegate();
  FakeRuntime custom(graph), delegated(graph, delegate.get(), 100);
  for (const Shapes& shapes : {Shapes{words, gate, image},
                               {{3, 5, 6, 2}, gate, {3, 5, 6, c}},
                               {{3, 5, 6, 2}, {3, 1, 1, c}, {3, 5, 6, c}},
                               {words, {2, 1, 1, c}, {2, 5, 6, c}},
                               {words, image, image},
                               {words, {1, c}, image},
                               {words, {1, 1, 6, c}, image},
                               {words, {5, 1, c}, image},
                               {{1, 1, 6, 2}, {3, 5, 1, c}, {3, 5, 6, c}},
                               {{2, 5, 1, 2}, {1, 1, 6, c}, {1, 5, 6, c}},
                               {words, gate, {2, 5, 1, c}},
                               {{2, 5, 6, 2}, gate, {1, 1, 1, 1}},
                               {{1, 1, 1, 2}, image, image},
                               {words, gate, image}}) {
    std::vector<std::vector<uint8_t>> results;
    for (FakeRuntime* runtime : {&custom, &delegated}) {
      ASSERT_TRUE(runtime->Resize(graph.inputs[0], shapes.words));
      ASSERT_TRUE(runtime->Resize(graph.inputs[1], shapes.gate));
      ASSERT_TRUE(runtime->Resize(graph.inputs[2], shapes.addend));
      results.push_back(RunOnce(runtime));
    }
    EXPECT_EQ(results[0], results[1]) << c << " channels, " << shapes.gate.size();
  }
}

TEST(Resize, OfAGateAndOfWhatIsAddedToItsProduct) {
  for (const bool gate_first : {false, true}) {
    for (const int channels : {40, 64}) {
      for (const int product_activation : {0, 1}) {
        for (const int sum_activation : {0, 1}) {
          GatedParams params;
          params.channels = channels;
          params.gate_first = gate_first;
          params.product_activation = product_activation;
          params.sum_activation = sum_activation;
          ExpectSameAfterResizes(params);
        }
      }
    }
  }
}

TEST(Prepare, ATensorThatTwoNodesWriteIsRefused) {
  // Node 3, which packs the second layer's signs, writes them to the tensor that node 0 has written. The test refuses
  // this graph twice: once as it is, and once with a node 4 that reads the overwritten tensor.
  Graph graph = ResidualGraph(2);
  const int words = graph.nodes[0].outputs[0];
  graph.nodes[3].outputs = {words};
  for (const int read : {graph.nodes[4].inputs[0], words}) {
    graph.nodes[4].inputs[0] = read;
    const DelegatePointer delegate = MakeDelegate();
    FakeRuntime runtime(graph, delegate.get(), 100);
    EXPECT_FALSE(runtime.Allocate());
    ExpectIn(runtime.errors(), "litebnn: LceQuantize, node 3: output 0 (tensor " + std::to_string(words) +
                                   "): expected no node before this one to write it, found one. ");
  }
}

TEST(Prepare, AnInputThatANodeWrites) {
  Graph graph = ResidualGraph(2);
  const int words = graph.nodes[0].outputs[0];
  graph.inputs.push_back(words);
  const DelegatePointer delegate = MakeDelegate();
  FakeRuntime custom(graph), delegated(graph, delegate.get(), 100);
  EXPECT_EQ(RunOnce(&custom), RunOnce(&delegated));
}

TEST(Prepare, ATensorThatALaterNodeWritesIsRefused) {
  Graph graph = ResidualGraph(2);
  std::swap(graph.nodes[0], graph.nodes[1]);
  const DelegatePointer delegate = MakeDelegate();
  FakeRuntime runtime(graph, delegate.get(), 100);
  EXPECT_FALSE(runtime.Allocate());
  ExpectIn(runtime.errors(), "litebnn: LceBconv2d, node 0: input 0 (tensor " +
                                 std::to_string(graph.nodes[0].inputs[0]) +
                                 "): expected a node before this one to write it, found this or a later one. ");
}

TEST(Prepare, AGateOfNoDimensionsForImagesOfOneChannel) {
  GatedParams params;
  params.channels = 1;
  for (const bool gate_first : {false, true}) {
    params.gate_first = gate_first;
    Graph graph = GatedGraph(params);
    graph.tensors[static_cast<size_t>(graph.inputs[1])].shape = {};
    const DelegatePointer delegate = MakeDelegate();
    FakeRuntime custom(graph), delegated(graph, delegate.get(), 100);
    EXPECT_EQ(RunOnce(&custom), RunOnce(&delegated));
  }
}

TEST(Resize, OfAGateToWhatDoesNotGoWithItsImageIsRefused) {
  // The gate is fused into the convolution only if an ADD follows.
  for (const bool adds : {true, false}) {
    GatedParams params;
    if (!adds) params.sum_activation = -1;
    const Graph graph = GatedGraph(params);
    const int gate = graph.inputs[1];
    const std::string op = adds ? "litebnn: LceBconv2d with MUL, PRELU and ADD, node 0: gate (tensor 6 'a tensor'): "
                                : "litebnn: MUL with PRELU and ADD, node 2: input 2 (tensor 6 'a tensor'): ";
    for (const std::vector<int>& shape :
         {std::vector<int>{}, {1, 1, 7, 40}, {1, 4, 1, 40}, {1, 4, 6, 40}, {1, 1, 1, 1}, {1, 1, 1, 41}}) {
      ExpectIn(ErrorsAfterResize(graph, gate, shape), op + "shape: expected one that goes with [1, 5, 6, 40], found ");
    }
    ExpectIn(ErrorsAfterResize(graph, gate, {1, 1, 1, 1, 40}), op + "shape: expected at most 4 dimensions");
  }
  const Graph graph = GatedGraph({});
  ExpectIn(ErrorsAfterResize(graph, graph.inputs[2], {1, 4, 6, 40}),
           "shape: expected one that goes with [1, 5, 6, 40], found [1, 4, 6, 40]");
}

TEST(Resize, OfAGateToAnotherTypeIsRefused) {
  const Graph graph = GatedGraph({});
  for (const int tensor : {graph.inputs[1], graph.inputs[2], graph.nodes[2].inputs[1]}) {
    ExpectIn(ErrorsOfInt8(graph, tensor),
             "(tensor " + std::to_string(tensor) + " 'a tensor'): type: expected FLOAT32, found INT8");
  }
}

TEST(Invoke, BehindAResizeThatFailedIsRefused) {
  const Graph graph = ChainGraph(1);
  const DelegatePointer delegate = MakeDelegate();
  FakeRuntime custom(graph), delegated(graph, delegate.get(), 100);
  for (FakeRuntime* runtime : {&custom, &delegated}) {
    const std::vector<uint8_t> expected = RunOnce(runtime);
    ASSERT_TRUE(runtime->Resize(0, {1, 9, 9, 3}));
    EXPECT_FALSE(runtime->Allocate());
    EXPECT_FALSE(runtime->Invoke());
    ExpectIn(runtime->errors(), "expected tensors to be allocated before it runs, found that this has failed. ");
    ASSERT_TRUE(runtime->Resize(0, graph.tensors[0].shape));
    EXPECT_EQ(RunOnce(runtime), expected);
  }
}

TEST(Invoke, WithoutMemoryIsRefused) {
  // The data pointer of the input is null, as in a dynamic tensor to which nothing has been written.
  FakeRuntime runtime(QuantizeGraph({2, 5}, kTfLiteFloat32));
  ASSERT_TRUE(runtime.Allocate());
  const_cast<TfLiteTensor&>(runtime.tensor(0)).data = nullptr;
  EXPECT_FALSE(runtime.Invoke());
  EXPECT_NE(runtime.errors().find("input (tensor 0 'a tensor'): expected 40 bytes of data, found 0"),
            std::string::npos);
}

}  // namespace
}  // namespace litebnn::testing
