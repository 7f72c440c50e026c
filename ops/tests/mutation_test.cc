// Runs randomly damaged models. None may crash, leak, access memory out of bounds, or take longer than a second. Every
// ISA must give the same bits, as custom ops and through the delegate.
//
// Environment variables: LITEBNN_MUTATIONS is the number of models (default 500), LITEBNN_SEED the first seed (default
// 0), LITEBNN_SECONDS the time limit for emulators. Build this test with LITEBNN_SANITIZE=address,undefined.
#include <gtest/gtest.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

#include "tests/support/damage.h"
#include "tests/support/delegates.h"
#include "tests/support/graphs.h"
#include "tests/support/isa_names.h"

namespace litebnn::testing {
namespace {

// Graphs with larger tensors are prepared but not run, because the time of a run depends on the tensors' size.
constexpr size_t kMaxBytesToRun = size_t{1} << 20;

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
  const double most_seconds = FromEnvironment("LITEBNN_SECONDS", 1);
  uint32_t ran = 0, slowest_seed = first;
  double slowest = 0;
  for (uint32_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE("LITEBNN_SEED=" + std::to_string(seed) + " LITEBNN_MUTATIONS=1");
    std::mt19937 generator(seed);
    const RandomBits random = std::ref(generator);
    Graph graph = RandomGraph(random);
    for (int left = Pick(random, 1, 3); left > 0; --left) Damage(random, &graph);
    const auto timed_run = [&](FakeRuntime* runtime, std::vector<uint8_t>* outputs) {
      const double begin = SecondsOfProcess();
      const bool all_well = RunOnce(runtime, outputs);
      const double seconds = SecondsOfProcess() - begin;
      EXPECT_LT(seconds, most_seconds);
      if (seconds > slowest) {
        slowest = seconds;
        slowest_seed = seed;
      }
      return all_well;
    };

    const int num_threads = Pick(random, 1, 2);
    const auto partition_size = static_cast<size_t>(Pick(random, 1, 4));
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
  // Below 100 seeds, all models may happen to be accepted, or all refused, so the test does not check that both occur.
  if (count >= 100) {
    EXPECT_GT(ran, 0u);
    EXPECT_LT(ran, count);
  }
}

}  // namespace
}  // namespace litebnn::testing
