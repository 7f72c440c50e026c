// Whole graphs in the small runtime: however they are cut into partitions, the bits are the same.
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/delegates.h"
#include "tests/support/graphs.h"

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

TEST(Resize, ToAnotherNumberOfChannelsIsRefused) {
  FakeRuntime runtime(ConvGraph({}));
  ASSERT_TRUE(runtime.Allocate());
  ASSERT_TRUE(runtime.Resize(0, {1, 5, 6, 3}));
  EXPECT_FALSE(runtime.Allocate());
  EXPECT_NE(runtime.errors().find("last dimension: expected 2 words"), std::string::npos);
}

TEST(Invoke, WithoutMemoryIsRefused) {
  // A dynamic tensor that nothing has filled is like this.
  FakeRuntime runtime(QuantizeGraph({2, 5}, kTfLiteFloat32));
  ASSERT_TRUE(runtime.Allocate());
  const_cast<TfLiteTensor&>(runtime.tensor(0)).data = nullptr;
  EXPECT_FALSE(runtime.Invoke());
  EXPECT_NE(runtime.errors().find("input (tensor 0 'a tensor'): expected 40 bytes of data, found 0"),
            std::string::npos);
}

}  // namespace
}  // namespace litebnn::testing
