// Running a prepared model must not allocate memory: this test counts every allocation of the process.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <functional>

#include "tests/support/delegates.h"
#include "tests/support/graphs.h"
#include "tests/support/libc_malloc.h"

namespace {

std::atomic<int64_t> allocations{0};

}  // namespace

extern "C" {
void* malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* block, size_t size) {
  ++allocations;
  return __libc_realloc(block, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
void* memalign(size_t alignment, size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** block, size_t alignment, size_t size) {
  ++allocations;
  *block = __libc_memalign(alignment, size);
  return *block == nullptr ? 12 : 0;
}
}

namespace litebnn::testing {
namespace {

int64_t AllocationsOfInvoke(FakeRuntime* runtime) {
  EXPECT_TRUE(runtime->Allocate()) << runtime->errors();
  runtime->FillInputs(1);
  bool all_well = true;
  const int64_t before = allocations;
  for (int i = 0; i < 3; ++i) all_well = runtime->Invoke() && all_well;
  const int64_t after = allocations;
  EXPECT_TRUE(all_well);
  return after - before;
}

TEST(Allocation, IsCounted) {
  const int64_t before = allocations;
  // The pointer is volatile, because the compiler may otherwise remove an allocation whose memory is never used.
  void* volatile by_malloc = std::malloc(100);
  std::free(by_malloc);
  void* volatile by_new = ::operator new(100);
  ::operator delete(by_new);
  EXPECT_EQ(allocations - before, 2);
}

class InvokeAllocatesNothing : public ::testing::TestWithParam<int> {};

TEST_P(InvokeAllocatesNothing, AsCustomOps) {
  FakeRuntime runtime(ChainGraph(3), GetParam());
  EXPECT_EQ(AllocationsOfInvoke(&runtime), 0);
}

TEST_P(InvokeAllocatesNothing, ThroughTheDelegate) {
  const DelegatePointer delegate = MakeDelegate();
  FakeRuntime runtime(ChainGraph(3), delegate.get(), 100, GetParam());
  EXPECT_EQ(AllocationsOfInvoke(&runtime), 0);
}

TEST_P(InvokeAllocatesNothing, AfterAResize) {
  const DelegatePointer delegate = MakeDelegate();
  FakeRuntime runtime(ChainGraph(1), delegate.get(), 2, GetParam());
  EXPECT_EQ(AllocationsOfInvoke(&runtime), 0);
  ASSERT_TRUE(runtime.Resize(0, {2, 14, 11, 70}));
  EXPECT_EQ(AllocationsOfInvoke(&runtime), 0);
}

TEST_P(InvokeAllocatesNothing, ForEveryKindOfOp) {
  std::mt19937 random(5);
  for (int i = 0; i < 100; ++i) {
    FakeRuntime runtime(RandomGraph(std::ref(random)), GetParam());
    EXPECT_EQ(AllocationsOfInvoke(&runtime), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, InvokeAllocatesNothing, ::testing::Values(1, 3));

}  // namespace
}  // namespace litebnn::testing
