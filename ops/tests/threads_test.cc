// Tests of interpreters on several threads at once. They find most bugs when built with ThreadSanitizer.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "tests/support/delegates.h"
#include "tests/support/graphs.h"

namespace litebnn::testing {
namespace {

constexpr int kCallers = 3;
constexpr int kRuns = 5;

uint64_t ExpectedHash() {
  FakeRuntime runtime(ChainGraph(2));
  EXPECT_TRUE(runtime.Allocate()) << runtime.errors();
  runtime.FillInputs(4);
  EXPECT_TRUE(runtime.Invoke());
  return runtime.OutputHash();
}

void RunRepeatedly(FakeRuntime* runtime, uint64_t expected) {
  ASSERT_TRUE(runtime->Allocate()) << runtime->errors();
  runtime->FillInputs(4);
  for (int i = 0; i < kRuns; ++i) {
    ASSERT_TRUE(runtime->Invoke());
    EXPECT_EQ(runtime->OutputHash(), expected);
  }
}

TEST(Fork, AChildRunsWhatItsParentPrepared) {
  const uint64_t expected = ExpectedHash();
  DelegatePointer delegate = MakeDelegate({{"num_threads", "3"}});
  auto delegated = std::make_unique<FakeRuntime>(ChainGraph(2), delegate.get(), 2);
  auto custom = std::make_unique<FakeRuntime>(ChainGraph(2), 2);
  RunRepeatedly(delegated.get(), expected);
  RunRepeatedly(custom.get(), expected);
  const pid_t child = fork();
  if (child == 0) {
    // The alarm kills a child process that hangs.
    alarm(20);
    bool all_well = true;
    for (auto* runtime : {&delegated, &custom}) {
      all_well = (*runtime)->Invoke() && (*runtime)->OutputHash() == expected && all_well;
      // The destructor must not wait for threads that exist only in the parent process.
      runtime->reset();
    }
    delegate.reset();
    _exit(all_well ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

template <typename Body>
void OnThreads(Body body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kCallers; ++i) threads.emplace_back(body);
  for (std::thread& thread : threads) thread.join();
}

TEST(Threads, InterpretersMayShareADelegate) {
  const uint64_t expected = ExpectedHash();
  const DelegatePointer delegate = MakeDelegate({{"num_threads", "3"}});
  OnThreads([&] {
    FakeRuntime runtime(ChainGraph(2), delegate.get(), 2);
    RunRepeatedly(&runtime, expected);
  });
}

TEST(Threads, InterpretersWithDelegatesOfTheirOwn) {
  const uint64_t expected = ExpectedHash();
  OnThreads([&] {
    const DelegatePointer delegate = MakeDelegate({{"num_threads", "2"}});
    FakeRuntime runtime(ChainGraph(2), delegate.get(), 100);
    RunRepeatedly(&runtime, expected);
  });
}

TEST(Threads, InterpretersWithCustomOps) {
  const uint64_t expected = ExpectedHash();
  OnThreads([&] {
    for (int num_threads : {2, 3}) {
      FakeRuntime runtime(ChainGraph(2), num_threads);
      RunRepeatedly(&runtime, expected);
    }
  });
}

}  // namespace
}  // namespace litebnn::testing
