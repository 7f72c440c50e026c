// Tests of exhausted memory: each allocation of the library fails in turn, and the library must report the failure
// through the runtime.
//
// An allocation counts as the library's if its caller is in liblitebnn.so, which includes the C++ library.
#include <gtest/gtest.h>
#include <link.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tests/support/delegates.h"
#include "tests/support/graphs.h"
#include "tests/support/libc_malloc.h"
#include "tflite/ops/contract.h"

namespace {

uintptr_t library_begin = 0, library_end = 0;
// The number of allocations of the library that will still succeed. It is negative once an allocation has failed. After
// that one, all later allocations fail too if `fails_from_then_on` is true.
int64_t allocations_left = INT64_MAX;
bool fails_from_then_on = false;

bool Fails(const void* caller) {
  const auto address = reinterpret_cast<uintptr_t>(caller);
  if (address < library_begin || address >= library_end) return false;
  const int64_t left = allocations_left--;
  return left == 0 || (left < 0 && fails_from_then_on);
}

}  // namespace

extern "C" {
#define LITEBNN_FAIL_OR(allocate) (Fails(__builtin_return_address(0)) ? (errno = ENOMEM, nullptr) : (allocate))
void* malloc(size_t size) { return LITEBNN_FAIL_OR(__libc_malloc(size)); }
void* calloc(size_t count, size_t size) { return LITEBNN_FAIL_OR(__libc_calloc(count, size)); }
void* realloc(void* block, size_t size) { return LITEBNN_FAIL_OR(__libc_realloc(block, size)); }
void* aligned_alloc(size_t alignment, size_t size) { return LITEBNN_FAIL_OR(__libc_memalign(alignment, size)); }
}

namespace litebnn::testing {
namespace {

int FindLibrary(dl_phdr_info* info, size_t, void*) {
  if (std::strstr(info->dlpi_name, "liblitebnn.so") == nullptr) return 0;
  library_begin = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type == PT_LOAD)
      library_end = std::max<uintptr_t>(library_end, library_begin + header.p_vaddr + header.p_memsz);
  }
  return 1;
}

enum class EntryPoint { kCustomOps, kDelegate };

struct Result {
  bool all_well = false;
  std::string errors;
  uint64_t hash = 0;
};

std::string plugin_error;

DelegatePointer CreateDelegate() {
  const char *keys[] = {"num_threads"}, *values[] = {"2"};
  plugin_error.clear();
  return DelegatePointer(
      tflite_plugin_create_delegate(keys, values, 1, [](const char* message) { plugin_error = message; }));
}

// Prepares a graph, runs it, resizes its input and runs it again. Returns at the first error.
Result RunGraph(const Graph& graph, EntryPoint entry_point, const std::vector<int>& new_shape,
                ::TfLiteDelegate* delegate) {
  Result result;
  FakeRuntime runtime(graph, delegate, entry_point == EntryPoint::kDelegate ? 100 : 0, 2);
  const auto run = [&] {
    if (!runtime.Allocate()) return false;
    runtime.FillInputs(3);
    const bool all_well = runtime.Invoke();
    result.hash = result.hash * 31 + runtime.OutputHash();
    return all_well;
  };
  result.all_well = run() && runtime.Resize(0, new_shape) && run();
  result.errors = runtime.errors();
  return result;
}

Result RunAll(const Graph& graph, EntryPoint entry_point, const std::vector<int>& new_shape) {
  if (entry_point == EntryPoint::kCustomOps) return RunGraph(graph, entry_point, new_shape, nullptr);
  const DelegatePointer delegate = CreateDelegate();
  if (delegate == nullptr) return {false, plugin_error, 0};
  Result result = RunGraph(graph, entry_point, new_shape, delegate.get());
  const int64_t left = allocations_left;
  if (!result.all_well && left < 0) {
    // After the failed allocation, the same delegate must work again with enough memory.
    allocations_left = INT64_MAX;
    const Result again = RunGraph(graph, entry_point, new_shape, delegate.get());
    EXPECT_EQ(again.errors.find("out of memory"), std::string::npos) << again.errors;
    allocations_left = left;
  }
  return result;
}

struct Case {
  const char* name;
  Graph graph;
  std::vector<int> new_shape;
};

std::vector<Case> Cases() {
  ConvParams same_zero;
  same_zero.changed = {{contract::kPadValues, contract::kPadValuesZero}};
  // Error messages about an invalid model are strings, so composing them allocates memory, too.
  Graph refused = ConvGraph({});
  refused.nodes[0].options = EncodeOptions({});
  Int8NormParams joined_norms;
  joined_norms.slices = 2;
  return {{"chain", ChainGraph(2), {2, 14, 11, 70}},
          {"residual", ResidualGraph(3), {2, 5, 5, 40}},
          {"delayed", ResidualGraph(2, 5, 40, 0, /*doubles=*/true), {2, 5, 5, 40}},
          {"same-zero", ConvGraph(same_zero), {2, 4, 9, 2}},
          {"batch norms", BatchNormGraph(40, 40, true), {2, 3, 4, 40}},
          {"pooled", PooledGraph({1, 9, 9, 8}, {1, 2, 2, 2, 2, 0}, {1, 1, 1, 3, 3, 0}), {2, 9, 9, 1}},
          {"joined", JoinedGraph({}), {1, 6, 6, 5}},
          {"gated", GatedGraph({}), {1, 5, 6, 2}},
          {"int8", Int8Graph({}), {2, 6, 7, 3}},
          {"int8 norm", Int8NormGraph({}), {1, 3, 5, 40}},
          {"int8 norms", Int8NormGraph(joined_norms), {1, 3, 5, 40}},
          {"refused", refused, {1, 5, 6, 2}}};
}

TEST(FailedAllocations, AreReported) {
  ASSERT_EQ(dl_iterate_phdr(FindLibrary, nullptr), 1);
  int64_t failed = 0;
  for (const Case& c : Cases()) {
    for (const EntryPoint entry_point : {EntryPoint::kCustomOps, EntryPoint::kDelegate}) {
      allocations_left = INT64_MAX;
      const Result expected = RunAll(c.graph, entry_point, c.new_shape);
      const int64_t count = INT64_MAX - allocations_left;
      EXPECT_GT(count, 0);
      for (const bool and_all_behind : {false, true}) {
        fails_from_then_on = and_all_behind;
        for (int64_t i = 0; i < count; ++i, ++failed) {
          SCOPED_TRACE(std::string(c.name) + (entry_point == EntryPoint::kDelegate ? ", delegate" : ", custom ops") +
                       ", allocation " + std::to_string(i));
          allocations_left = i;
          const Result result = RunAll(c.graph, entry_point, c.new_shape);
          allocations_left = INT64_MAX;
          if (result.all_well) {
            EXPECT_EQ(result.hash, expected.hash);
          } else {
            EXPECT_NE(result.errors.find("litebnn: "), std::string::npos) << result.errors;
          }
        }
      }
    }
  }
  std::printf("%lld failed allocations survived\n", static_cast<long long>(failed));
}

}  // namespace
}  // namespace litebnn::testing
