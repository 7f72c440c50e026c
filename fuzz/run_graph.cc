#include "fuzz/run_graph.h"

#include <cstdlib>

#include "tests/support/delegates.h"
#include "tests/support/graphs.h"
#include "tests/support/isa_names.h"

namespace litebnn::testing {
namespace {

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

// What each run gave, the first and the one after resizing.
struct Results {
  std::vector<std::vector<uint8_t>> first, resized;

  void Add(const Graph& graph, const HowToRun& how, FakeRuntime&& runtime) {
    std::vector<uint8_t> outputs;
    if (!RunOnce(runtime, &outputs)) return;
    first.push_back(outputs);
    if (graph.inputs.empty() || how.new_shape.empty() || !runtime.Resize(graph.inputs[0], how.new_shape)) return;
    if (RunOnce(runtime, &outputs)) resized.push_back(outputs);
  }
};

void CheckEqual(const std::vector<std::vector<uint8_t>>& results) {
  for (const std::vector<uint8_t>& result : results) {
    if (result != results[0]) std::abort();
  }
}

}  // namespace

void RunEveryWay(const Graph& graph, const HowToRun& how) {
  Results results;
  std::vector<std::string> isas = IsaNames();
  // The library's own choice, which may differ from filter to filter.
  isas.push_back("");
  for (const std::string& isa : isas) {
    setenv("LITEBNN_ISA", isa.c_str(), 1);
    results.Add(graph, how, FakeRuntime(graph, how.num_threads));
    const DelegatePointer delegate = MakeDelegate({{"isa", isa.c_str()}});
    results.Add(graph, how, FakeRuntime(graph, delegate.get(), how.partition_size, how.num_threads));
  }
  CheckEqual(results.first);
  CheckEqual(results.resized);
}

}  // namespace litebnn::testing
