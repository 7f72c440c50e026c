#include "fuzz/run_graph.h"

#include <cstdlib>

#include "tests/support/delegates.h"
#include "tests/support/graphs.h"
#include "tests/support/isa_names.h"

namespace litebnn::testing {
namespace {

// The size in bytes up to which graphs run. Graphs with larger tensors are only prepared, because the time of a run
// depends on the size.
constexpr size_t kMaxBytesToRun = size_t{1} << 18;

// Runs a graph once. Returns true if it ran; `outputs` then has its results.
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

// The results of the two runs of a graph: the first run, and the run after a resize.
struct Results {
  std::vector<std::vector<uint8_t>> first, resized;

  void Add(const Graph& graph, const RunSettings& settings, FakeRuntime&& runtime) {
    std::vector<uint8_t> outputs;
    if (!RunOnce(runtime, &outputs)) return;
    first.push_back(outputs);
    if (graph.inputs.empty() || settings.new_shape.empty() || !runtime.Resize(graph.inputs[0], settings.new_shape))
      return;
    if (RunOnce(runtime, &outputs)) resized.push_back(outputs);
  }
};

void CheckEqual(const std::vector<std::vector<uint8_t>>& results) {
  for (const std::vector<uint8_t>& result : results) {
    if (result != results[0]) std::abort();
  }
}

}  // namespace

void RunOnEveryIsa(const Graph& graph, const RunSettings& settings) {
  Results results;
  std::vector<std::string> isas = IsaNames();
  // The empty name stands for the library's own choice of an ISA, which may differ from filter to filter.
  isas.push_back("");
  for (const std::string& isa : isas) {
    setenv("LITEBNN_ISA", isa.c_str(), 1);
    results.Add(graph, settings, FakeRuntime(graph, settings.num_threads));
    const DelegatePointer delegate = MakeDelegate({{"isa", isa.c_str()}});
    results.Add(graph, settings, FakeRuntime(graph, delegate.get(), settings.partition_size, settings.num_threads));
  }
  CheckEqual(results.first);
  CheckEqual(results.resized);
}

}  // namespace litebnn::testing
