// Tests of litebnn_describe, by graphs in the fake runtime.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>

#include "tests/support/delegates.h"
#include "tests/support/graphs.h"

namespace litebnn::testing {
namespace {

std::string Describe(const Graph& graph, size_t partition_size = 100) {
  const DelegatePointer delegate = MakeDelegate({{"describe", "1"}});
  const FakeRuntime runtime(graph, delegate.get(), partition_size);
  return litebnn_describe(delegate.get());
}

TEST(Describe, NothingUnlessAsked) {
  const DelegatePointer delegate = MakeDelegate();
  const FakeRuntime runtime(ChainGraph(1), delegate.get(), 100);
  EXPECT_EQ(litebnn_describe(delegate.get()), nullptr);
  EXPECT_EQ(litebnn_describe(nullptr), nullptr);
}

TEST(Describe, NoGraphs) {
  EXPECT_STREQ(litebnn_describe(MakeDelegate({{"describe", "1"}}).get()), R"({"graphs": []})");
}

TEST(Describe, StepsOfEachPartition) {
  Graph graph = ChainGraph(1);
  graph.nodes.resize(2);
  graph.outputs = graph.nodes[1].outputs;
  // The fake runtime adds a node of its own to each graph.
  EXPECT_EQ(Describe(graph, 1),
            R"({"graphs": [{"left": [)"
            R"({"index": 2, "builtin_code": 0, "custom_name": "Other", "reason": "litebnn has no such op"}], )"
            R"("partitions": [)"
            R"({"steps": [{"op": "LceQuantize", "nodes": [{"index": 0, "op": "LceQuantize"}]}]}, )"
            R"({"steps": [{"op": "LceBconv2d", "nodes": [{"index": 1, "op": "LceBconv2d"}]}]}]}]})");
}

TEST(Describe, NodesThatAreFusedAreOneStep) {
  const std::string found = Describe(ResidualGraph(1));
  EXPECT_NE(found.find(R"({"op": "LceBconv2d with ADD", "nodes": [{"index": 2, "op": "ADD"}, )"
                       R"({"index": 1, "op": "LceBconv2d"}]})"),
            std::string::npos)
      << found;
}

TEST(Describe, WhyNodesAreLeft) {
  Graph graph = ChainGraph(1);
  graph.nodes[2].op = "Lce\"\\\n\xff" + std::string(200, 'x');
  const std::string found = Describe(graph);
  EXPECT_NE(found.find(R"("left": [{"index": 2, "builtin_code": 32, "custom_name": "Lce\u0022\u005c\u000a\u00ff)" +
                       std::string(93, 'x') + R"(", "reason": "litebnn has no such op"})"),
            std::string::npos)
      << found;
}

TEST(Describe, EachNodeOnce) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    const Graph graph = RandomGraph(std::ref(random));
    const std::string found = Describe(graph, 1 + seed % 5);
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const std::string index = "{\"index\": " + std::to_string(i) + ", ";
      const size_t first = found.find(index);
      EXPECT_NE(first, std::string::npos) << i << found;
      EXPECT_EQ(first, found.rfind(index)) << i << found;
    }
  }
}

TEST(Describe, AGraphThatIsDelegatedAgainOnce) {
  const DelegatePointer delegate = MakeDelegate({{"describe", "1"}});
  const Graph graph = ResidualGraph(2);
  FakeRuntime first(graph, delegate.get(), 100);
  const std::string once = litebnn_describe(delegate.get());
  EXPECT_TRUE(first.Allocate());
  EXPECT_EQ(litebnn_describe(delegate.get()), once);
  const FakeRuntime second(graph, delegate.get(), 100);
  const std::string both = litebnn_describe(delegate.get());
  const std::string of_graph = once.substr(12, once.size() - 14);
  EXPECT_EQ(both, "{\"graphs\": [" + of_graph + ", " + of_graph + "]}");
}

}  // namespace
}  // namespace litebnn::testing
