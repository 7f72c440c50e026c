// Models with random damage: none may crash, leak, read or write out of bounds, or take longer than a second, and
// every ISA gives the same bits, as custom ops and through the delegate. The number of models is LITEBNN_MUTATIONS (500
// by default) and the first seed LITEBNN_SEED (0). Build it with LITEBNN_SANITIZE=address,undefined.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "tests/support/delegates.h"
#include "tests/support/graphs.h"
#include "tests/support/isa_names.h"

namespace litebnn::testing {
namespace {

// Graphs whose tensors are larger are prepared but not run: their time is their size's.
constexpr size_t kMaxBytesToRun = size_t{1} << 20;

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  Graph Make() {
    Graph graph = RandomGraph(random_);
    const int count = Pick(1, 3);
    for (int i = 0; i < count; ++i) Mutate(&graph);
    return graph;
  }

  int Pick(int low, int high) { return low + static_cast<int>(random_() % static_cast<uint32_t>(high - low + 1)); }

 private:
  template <typename T>
  T& Any(std::vector<T>& values) {
    return values[random_() % values.size()];
  }

  int Extreme() {
    const int values[] = {0,
                          1,
                          -1,
                          2,
                          31,
                          32,
                          33,
                          255,
                          32767,
                          65536,
                          1 << 20,
                          std::numeric_limits<int>::max(),
                          std::numeric_limits<int>::max() - 1,
                          std::numeric_limits<int>::min()};
    return values[random_() % (sizeof(values) / sizeof(values[0]))];
  }

  void Mutate(Graph* graph) {
    GraphNode& node = Any(graph->nodes);
    GraphTensor& tensor = Any(graph->tensors);
    switch (Pick(0, 13)) {
      case 0:
        if (!node.builtin.empty()) Any(node.builtin) = Pick(0, 1) == 0 ? Pick(-1, 4) : Extreme();
        if (!node.options.empty()) node.options.resize(random_() % node.options.size());
        break;
      case 1:
      case 2:
        if (!node.options.empty()) Any(node.options) = static_cast<uint8_t>(random_());
        break;
      case 3:
        if (!node.options.empty()) Any(node.options) ^= static_cast<uint8_t>(1 << random_() % 8);
        break;
      case 4:
      case 5:
        ChangeOption(&node);
        break;
      case 6:
      case 7:
        if (!tensor.shape.empty()) Any(tensor.shape) = Extreme();
        break;
      case 8:
        if (!tensor.shape.empty()) Any(tensor.shape) ^= Pick(1, 3);
        break;
      case 9:
        if (Pick(0, 1) == 0) {
          tensor.shape.push_back(Pick(1, 2));
        } else if (!tensor.shape.empty()) {
          tensor.shape.erase(tensor.shape.begin());
        }
        break;
      case 10: {
        const TfLiteType types[] = {kTfLiteNoType, kTfLiteFloat32, kTfLiteInt32,
                                    kTfLiteInt8,   kTfLiteBool,    kTfLiteInt64};
        tensor.type = types[random_() % 6];
        break;
      }
      case 11: {
        const float scales[] = {
            0, -1, 1e-40f, 3e38f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()};
        tensor.quantization = {scales[random_() % 6], Extreme()};
        break;
      }
      case 12:
        ChangeConstant(&tensor);
        break;
      default:
        ChangeConnection(graph, &node);
        break;
    }
  }

  // Sets one of the options to a value at the edge of what there is, in the graph's own encoding: all values take 8
  // bytes.
  void ChangeOption(GraphNode* node) {
    if (node->options.size() < 18) return;
    const size_t count = node->options[node->options.size() - 1] == 8 && node->op == "LceBMaxPool2d" ? 5 : 8;
    if (node->options.size() < 10 + 9 * count) return;
    const size_t values = node->options.size() - 10 - 9 * count;
    const auto value = static_cast<uint64_t>(static_cast<int64_t>(Extreme()) + Pick(-1, 1));
    const size_t position = values + 8 * (random_() % count);
    for (size_t i = 0; i < 8; ++i) node->options[position + i] = static_cast<uint8_t>(value >> (8 * i));
  }

  void ChangeConstant(GraphTensor* tensor) {
    switch (Pick(0, 3)) {
      case 0:
        tensor->constant.clear();
        break;
      case 1:
        tensor->constant.resize(static_cast<size_t>(Pick(1, 64)));
        break;
      case 2:
        tensor->misaligned = true;
        break;
      default:
        for (uint8_t& byte : tensor->constant) byte = static_cast<uint8_t>(random_());
        break;
    }
  }

  void ChangeConnection(Graph* graph, GraphNode* node) {
    const int tensors = static_cast<int>(graph->tensors.size());
    switch (Pick(0, 5)) {
      case 0:
        if (!node->inputs.empty()) Any(node->inputs) = Pick(-2, tensors);
        break;
      case 1:
        if (!node->outputs.empty()) Any(node->outputs) = Pick(-2, tensors);
        break;
      case 2:
        if (!node->inputs.empty()) node->inputs.pop_back();
        break;
      case 3:
        node->inputs.push_back(Pick(-1, tensors - 1));
        break;
      case 4:
        node->outputs.push_back(Pick(0, tensors - 1));
        break;
      default: {
        GraphNode copy = Any(graph->nodes);
        graph->nodes.insert(graph->nodes.begin() + Pick(0, static_cast<int>(graph->nodes.size())), copy);
        break;
      }
    }
  }

  std::mt19937 random_;
};

double SecondsOfProcess() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

bool RunOnce(FakeRuntime* runtime, std::vector<uint8_t>* outputs) {
  if (!runtime->Allocate()) {
    EXPECT_FALSE(runtime->errors().empty());
    return false;
  }
  if (runtime->tensor_bytes() > kMaxBytesToRun) return false;
  runtime->FillInputs(7);
  if (!runtime->Invoke()) {
    EXPECT_FALSE(runtime->errors().empty());
    return false;
  }
  *outputs = runtime->Outputs();
  return true;
}

uint32_t FromEnvironment(const char* name, uint32_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

TEST(Mutations, AreRefusedOrRun) {
  const uint32_t first = FromEnvironment("LITEBNN_SEED", 0), count = FromEnvironment("LITEBNN_MUTATIONS", 500);
  uint32_t ran = 0, slowest_seed = first;
  double slowest = 0;
  for (uint32_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE("LITEBNN_SEED=" + std::to_string(seed) + " LITEBNN_MUTATIONS=1");
    Mutator mutator(seed);
    const Graph graph = mutator.Make();
    const auto timed_run = [&](FakeRuntime* runtime, std::vector<uint8_t>* outputs) {
      const double begin = SecondsOfProcess();
      const bool all_well = RunOnce(runtime, outputs);
      const double seconds = SecondsOfProcess() - begin;
      EXPECT_LT(seconds, 1.0);
      if (seconds > slowest) {
        slowest = seconds;
        slowest_seed = seed;
      }
      return all_well;
    };

    const int num_threads = mutator.Pick(1, 2);
    const auto partition_size = static_cast<size_t>(mutator.Pick(1, 4));
    std::vector<std::vector<uint8_t>> results;
    for (const std::string& isa : IsaNames()) {
      SCOPED_TRACE("ISA " + isa);
      std::vector<uint8_t> outputs;
      setenv("LITEBNN_ISA", isa.c_str(), 1);
      FakeRuntime custom(graph, num_threads);
      if (timed_run(&custom, &outputs)) results.push_back(outputs);
      const DelegatePointer delegate =
          MakeDelegate({{"isa", isa.c_str()}, {"num_threads", num_threads == 1 ? "1" : "2"}});
      FakeRuntime delegated(graph, delegate.get(), partition_size);
      if (timed_run(&delegated, &outputs)) results.push_back(outputs);
    }
    if (!RuntimeAccepts(graph)) continue;
    ran += results.empty() ? 0 : 1;
    for (const std::vector<uint8_t>& result : results) EXPECT_TRUE(result == results[0]);
  }
  unsetenv("LITEBNN_ISA");
  std::printf("%u models, %u of them ran; the slowest, of seed %u, took %.3f s\n", count, ran, slowest_seed, slowest);
  // A few seeds, run again to look at one, may all go the same way.
  if (count >= 100) {
    EXPECT_GT(ran, 0u);
    EXPECT_LT(ran, count);
  }
}

}  // namespace
}  // namespace litebnn::testing
