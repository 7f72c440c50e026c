// Random layers that bytes choose, sound ones or damaged, with more than one thread, resized between two runs: all that
// a sound graph reaches, which bytes that are a graph (graphs_fuzz.cc) seldom are.
#include <functional>

#include "fuzz/run_graph.h"
#include "tests/support/damage.h"

namespace {

// Two bytes a number; what the bytes lack is zeros.
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
  HowToRun how;
  how.num_threads = Pick(random, 1, 3);
  how.partition_size = static_cast<size_t>(Pick(random, 1, 4));
  const int damages = Pick(random, 0, 1) == 0 ? Pick(random, 1, 3) : 0;
  Graph graph = RandomGraph(random);
  how.new_shape = graph.tensors[static_cast<size_t>(graph.inputs[0])].shape;
  // All but the channels, which the layers are made for.
  for (size_t axis = 0; axis + 1 < how.new_shape.size(); ++axis) how.new_shape[axis] += Pick(random, -1, 2);
  for (int left = damages; left > 0; --left) Damage(random, &graph);
  if (RuntimeAccepts(graph)) RunEveryWay(graph, how);
  return 0;
}
