// Fuzzes random layers that bytes select, valid or damaged, with several threads and a resize between two runs. This
// target reaches code that needs a valid graph, which the bytes of graphs_fuzz.cc seldom describe.
#include <functional>

#include "fuzz/run_graph.h"
#include "tests/support/damage.h"

namespace {

// A source of decisions that reads two bytes for each number; missing bytes count as zeros.
class Decisions {
 public:
  Decisions(const uint8_t* data, size_t size) : data_(data), left_(size) {}

  uint32_t operator()() {
    const uint32_t low = Byte();
    return low | Byte() << 8;
  }

 private:
  uint32_t Byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }

  const uint8_t* data_;
  size_t left_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace litebnn::testing;
  Decisions decisions(data, size);
  const RandomBits random = std::ref(decisions);
  RunSettings settings;
  settings.num_threads = Pick(random, 1, 3);
  settings.partition_size = static_cast<size_t>(Pick(random, 1, 4));
  const int damages = Pick(random, 0, 1) == 0 ? Pick(random, 1, 3) : 0;
  Graph graph = RandomGraph(random);
  settings.new_shape = graph.tensors[static_cast<size_t>(graph.inputs[0])].shape;
  // A resize changes all sizes but the channels, which the layers' weights determine.
  for (size_t axis = 0; axis + 1 < settings.new_shape.size(); ++axis) settings.new_shape[axis] += Pick(random, -1, 2);
  for (int left = damages; left > 0; --left) Damage(random, &graph);
  if (RuntimeAccepts(graph)) RunOnEveryIsa(graph, settings);
  return 0;
}
