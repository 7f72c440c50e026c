// Delays claimed nodes that run better in a later partition than in the first possible one.
#include <algorithm>
#include <cmath>

#include "tflite/partition/claim.h"
#include "tflite/runtime/node.h"

namespace litebnn {
namespace {

// Returns the size of each tensor in bytes: 0 for constants, infinity if the shape is unknown.
std::vector<double> FindBytes(const TfLiteContext& context) {
  std::vector<double> bytes;
  for (size_t i = 0; i < context.tensors_size; ++i) {
    const TfLiteTensor& tensor = context.tensors[i];
    const double values = IsConstant(tensor) ? 0 : CountKnownValues(tensor.dims);
    bytes.push_back(values * static_cast<double>(TypeBytes(tensor.type)));
  }
  return bytes;
}

// Returns the epoch in which the runtime runs each node. Epochs of claimed nodes alternate with epochs of other nodes.
// The first epoch is of the first node's kind. A node runs in the first epoch of its kind in which all its inputs are
// available.
std::vector<size_t> FindEpochs(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                               const std::vector<Claim>& claims) {
  std::vector<size_t> epochs(plan.size()), written(context.tensors_size);
  for (size_t i = 0; i < plan.size(); ++i) {
    const size_t kind = claims[i].is_claimed() == claims[0].is_claimed() ? 0 : 1;
    size_t epoch = kind;
    VisitEach(*plan[i].node->inputs, &written,
              [&](size_t there) { epoch = std::max(epoch, there + (there % 2 == kind ? 0 : 1)); });
    VisitEach(*plan[i].node->outputs, &written, [&](size_t& there) { there = epoch; });
    epochs[i] = epoch;
  }
  return epochs;
}

// True if nodes have state, such as variables: their order may then matter even without common tensors.
bool HasState(const TfLiteContext& context, const std::vector<PlannedNode>& plan) {
  const auto holds_state = [](const TfLiteTensor& tensor) {
    return tensor.type == kTfLiteResource || tensor.is_variable;
  };
  const auto runs_subgraph = [](const PlannedNode& planned) {
    const int32_t code = planned.registration->builtin_code;
    return code == kTfLiteBuiltinIf || code == kTfLiteBuiltinWhile || code == kTfLiteBuiltinCallOnce;
  };
  return std::any_of(context.tensors, context.tensors + context.tensors_size, holds_state) ||
         std::any_of(plan.begin(), plan.end(), runs_subgraph);
}

// Finds the claimed nodes that should run in a later epoch than the first possible one. An epoch is a group of nodes of
// one kind, claimed or not, between which the runtime runs no node of the other kind.
class Delays {
 public:
  Delays(const TfLiteContext& context, const std::vector<PlannedNode>& plan, const std::vector<Claim>& claims)
      : plan_(plan),
        claims_(claims),
        uses_(FindUses(context, plan)),
        bytes_(FindBytes(context)),
        epochs_(FindEpochs(context, plan, claims)),
        later_(epochs_) {
    if (!HasState(context, plan)) FindLaterEpochs(FindReads());
  }

  // Returns, for each node, the set (0 or 1) in which it is passed to the runtime. An epoch is a group of nodes that
  // are all claimed or all not claimed. Each epoch has a set, which differs from that of the epoch before if a node is
  // delayed to the epoch. A delayed node is in the set of its later epoch. The node is not delayed if the set changes
  // more than once up to this epoch.
  std::vector<size_t> FindSets() const {
    std::vector<size_t> changes(*std::max_element(epochs_.begin(), epochs_.end()) + 1);
    for (size_t i = 0; i < plan_.size(); ++i) {
      if (later_[i] != epochs_[i]) changes[later_[i]] = 1;
    }
    for (size_t epoch = 1; epoch < changes.size(); ++epoch) changes[epoch] += changes[epoch - 1];
    std::vector<size_t> sets(plan_.size());
    for (size_t i = 0; i < plan_.size(); ++i) {
      const size_t own = changes[epochs_[i]], later = changes[later_[i]];
      sets[i] = (later == own + 1 ? later : own) % 2;
    }
    return sets;
  }

 private:
  const TfLiteIntArray& Inputs(size_t i) const { return *plan_[i].node->inputs; }
  size_t Output(size_t i) const { return static_cast<size_t>(plan_[i].node->outputs->data[0]); }
  size_t Reader(size_t i) const { return uses_[Output(i)].reader; }

  // True if the only reader of the node's output is claimed too, so that the node may run any time before the reader.
  // The plan's first node is never delayed. Epochs (groups of nodes) alternate between claimed and other nodes, and the
  // first node determines which of the two kinds begins.
  bool MayWait(size_t i) const {
    if (i == 0 || !claims_[i].is_claimed() || plan_[i].node->outputs->size != 1 || Output(i) >= uses_.size())
      return false;
    return uses_[Output(i)].reads == 1 && claims_[Reader(i)].is_claimed();
  }

  // Returns the bytes that earlier partitions must keep in memory for each node if the node is delayed. They are the
  // bytes of its inputs. If the producer of an input can be delayed together with the node, the input adds at most the
  // bytes that its producer reads.
  std::vector<double> FindReads() const {
    std::vector<double> reads(plan_.size()), needed = bytes_;
    for (size_t i = 0; i < plan_.size(); ++i) {
      if (!MayWait(i)) continue;
      VisitEach(Inputs(i), &needed, [&](double bytes) { reads[i] += bytes; });
      double& written = needed[Output(i)];
      if (epochs_[Reader(i)] == epochs_[i]) written = std::min(written, reads[i]);
    }
    return reads;
  }

  void FindLaterEpochs(const std::vector<double>& reads) {
    for (size_t i = plan_.size(); i-- > 0;) {
      if (!MayWait(i)) continue;
      const double written = bytes_[Output(i)];
      if (std::isfinite(written) && reads[i] < written) later_[i] = later_[Reader(i)];
    }
  }

  const std::vector<PlannedNode>& plan_;
  const std::vector<Claim>& claims_;
  const std::vector<TensorUse> uses_;
  const std::vector<double> bytes_;
  const std::vector<size_t> epochs_;
  std::vector<size_t> later_;
};

}  // namespace

std::vector<std::vector<int>> DelayNodes(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                                         const std::vector<Claim>& claims) {
  const std::vector<size_t> set_of_nodes = Delays(context, plan, claims).FindSets();
  std::vector<std::vector<int>> sets(2);
  for (size_t i = 0; i < plan.size(); ++i) {
    if (claims[i].is_claimed()) sets[set_of_nodes[i]].push_back(plan[i].index);
  }
  if (sets[1].empty()) sets.pop_back();
  return sets;
}

}  // namespace litebnn
