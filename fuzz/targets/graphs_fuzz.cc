// Fuzzes graphs of litebnn's ops and of builtin ops that the delegate claims. A graph runs with every ISA, as custom
// ops and through the delegate. All runs must refuse the graph with a message, or give the same bits.
#include "fuzz/graph_bytes.h"
#include "fuzz/run_graph.h"
#include "tests/support/graphs.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace litebnn::testing;
  // The last byte selects the settings of the run, so that the bytes before it are a plain graph.
  const int choice = size == 0 ? 0 : data[size - 1];
  const Graph graph = ReadGraph(data, size - (size == 0 ? 0 : 1));
  if (RuntimeAccepts(graph))
    RunOnEveryIsa(graph, {choice % 8 == 7 ? 2 : 1, static_cast<size_t>(1 + choice / 8 % 4), {}});
  return 0;
}
