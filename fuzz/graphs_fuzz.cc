// Graphs of our ops and of the builtin ones that the delegate takes: every ISA, as custom ops and through the delegate,
// refuses them with a message or gives the same bits.
#include <cstdlib>
#include <cstring>

#include "fuzz/graph_bytes.h"
#include "tests/support/delegates.h"
#include "tests/support/graphs.h"
#include "tests/support/isa_names.h"

namespace {

using namespace litebnn;
using namespace litebnn::testing;

// Graphs whose tensors are larger are prepared but not run: their time is their size's.
constexpr size_t kMaxBytesToRun = size_t{1} << 18;

// Whether it ran; `outputs` are then what it gave.
bool RunOnce(FakeRuntime& runtime, std::vector<uint8_t>* outputs) {
  if (!runtime.Allocate()) {
    if (runtime.errors().empty()) std::abort();
    return false;
  }
  if (runtime.tensor_bytes() > kMaxBytesToRun) return false;
  runtime.FillInputs(7);
  if (!runtime.Invoke()) {
    if (runtime.errors().empty()) std::abort();
    return false;
  }
  *outputs = runtime.Outputs();
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The last byte says how the graph is run, so that the rest is a graph as it is.
  const int way = size == 0 ? 0 : data[size - 1];
  const int num_threads = way % 8 == 7 ? 2 : 1;
  const auto partition_size = static_cast<size_t>(1 + way / 8 % 4);
  const Graph graph = ReadGraph(data, size - (size == 0 ? 0 : 1));
  if (!RuntimeAccepts(graph)) return 0;
  std::vector<std::vector<uint8_t>> results;
  for (const std::string& isa : IsaNames()) {
    std::vector<uint8_t> outputs;
    setenv("LITEBNN_ISA", isa.c_str(), 1);
    FakeRuntime custom(graph, num_threads);
    if (RunOnce(custom, &outputs)) results.push_back(outputs);
    const DelegatePointer delegate = MakeDelegate({{"isa", isa.c_str()}});
    FakeRuntime delegated(graph, delegate.get(), partition_size, num_threads);
    if (RunOnce(delegated, &outputs)) results.push_back(outputs);
  }
  for (const std::vector<uint8_t>& result : results) {
    if (result != results[0]) std::abort();
  }
  return 0;
}
