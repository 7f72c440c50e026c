// Graphs of our ops and of the builtin ones that the delegate takes: every ISA, as custom ops and through the delegate,
// refuses them with a message or gives the same bits.
#include "fuzz/graph_bytes.h"
#include "fuzz/run_graph.h"
#include "tests/support/graphs.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace litebnn::testing;
  // The last byte says how the graph is run, so that the rest is a graph as it is.
  const int way = size == 0 ? 0 : data[size - 1];
  const Graph graph = ReadGraph(data, size - (size == 0 ? 0 : 1));
  if (RuntimeAccepts(graph)) RunEveryWay(graph, {way % 8 == 7 ? 2 : 1, static_cast<size_t>(1 + way / 8 % 4), {}});
  return 0;
}
