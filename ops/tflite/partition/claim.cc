#include "tflite/partition/claim.h"

#include <algorithm>

#include "tflite/ops/op_list.h"

namespace litebnn {

namespace {

// A set of tensor indices; indices out of range are in no set. The set is a bitmap, because a node may have any number
// of inputs, and each lookup must be cheap.
class TensorSet {
 public:
  explicit TensorSet(const TfLiteContext& context) : has_(context.tensors_size) {}
  bool Has(int tensor) const { return static_cast<size_t>(tensor) < has_.size() && has_[static_cast<size_t>(tensor)]; }
  void Set(const TfLiteIntArray& tensors, bool has) {
    VisitEach(tensors, &has_, [has](char& is_in_set) { is_in_set = has; });
  }

 private:
  std::vector<char> has_;
};

// Marks the nodes that the delegate claims whatever their neighbours are: custom ops, and some builtin ops. These
// builtin ops are faster in litebnn even alone, or begin a chain of ops at whose end signs are packed.
std::vector<bool> FindSeeds(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                            const std::vector<const OpType*>& types) {
  std::vector<bool> is_seed(plan.size());
  TensorSet becomes_signs(context);
  for (size_t i = plan.size(); i-- > 0;) {
    if (types[i] == nullptr) continue;
    const SignFeed feed = types[i]->sign_feed;
    const bool feeds = feed != SignFeed::kNone && becomes_signs.Has(plan[i].node->outputs->data[0]);
    is_seed[i] = types[i]->IsCustom() || types[i]->stands_alone || (feeds && feed == SignFeed::kBegins);
    if (feeds || types[i] == &kQuantizeOpType) becomes_signs.Set(*plan[i].node->inputs, true);
  }
  return is_seed;
}

// Returns an op for each node, or null if the node is not claimed. Some nodes are claimed whatever their neighbours
// are; others are claimed because a claimed node comes before them.
std::vector<const OpType*> ClaimForward(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                                        const std::vector<const OpType*>& types) {
  const std::vector<bool> is_seed = FindSeeds(context, plan, types);
  std::vector<const OpType*> claimed(plan.size());
  std::vector<const OpType*> writers(context.tensors_size);
  const std::vector<TensorUse> uses = FindUses(context, plan);
  for (size_t i = 0; i < plan.size(); ++i) {
    const OpType* type = types[i];
    if (type == nullptr) continue;
    const TfLiteIntArray &inputs = *plan[i].node->inputs, &outputs = *plan[i].node->outputs;
    const auto is_claimed = [&](int tensor) {
      const auto index = static_cast<size_t>(tensor);
      if (index >= writers.size() || writers[index] == nullptr) return false;
      if (type->is_sole_reader && uses[index].reads != 1) return false;
      return type->follows == nullptr || type->follows(*writers[index]);
    };
    if (!is_seed[i] && std::none_of(inputs.data, inputs.data + inputs.size, is_claimed)) continue;
    claimed[i] = type;
    for (int k = 0; k < outputs.size; ++k) {
      const auto index = static_cast<size_t>(outputs.data[k]);
      if (index < writers.size()) writers[index] = type;
    }
  }
  return claimed;
}

bool IsNorm(const OpType* type) { return type == &kScaleOpType || type == &kShiftOpType; }

// Marks the average pools of batch norms whose signs are packed. The packing can compute one average in the same pass.
std::vector<bool> FindPackedAverages(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                                     const std::vector<const OpType*>& types,
                                     const std::vector<const OpType*>& claimed) {
  std::vector<bool> found(plan.size());
  TensorSet norms(context), packed(context);
  for (size_t i = 0; i < plan.size(); ++i) {
    if (IsNorm(types[i])) norms.Set(*plan[i].node->outputs, true);
    if (claimed[i] == &kQuantizeOpType) packed.Set(*plan[i].node->inputs, true);
  }
  for (size_t i = 0; i < plan.size(); ++i) {
    if (types[i] != &kFloatAverageOpType) continue;
    const int image = plan[i].node->inputs->data[0];
    found[i] = norms.Has(image) && packed.Has(image);
    packed.Set(*plan[i].node->inputs, false);
  }
  return found;
}

// Claims the nodes whose output is only needed to compute signs. One average pool may read the result of a batch norm
// too, and is then claimed with it.
void ClaimSignFeeders(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                      const std::vector<const OpType*>& types, std::vector<const OpType*>* claimed) {
  const std::vector<bool> is_packed_average = FindPackedAverages(context, plan, types, *claimed);
  TensorSet read_by_signs(context), read_by_others(context), norms(context);
  for (size_t i = plan.size(); i-- > 0;) {
    if (is_packed_average[i]) continue;
    const TfLiteIntArray &inputs = *plan[i].node->inputs, &outputs = *plan[i].node->outputs;
    const bool feeds_signs = types[i] != nullptr && types[i]->sign_feed == SignFeed::kPasses &&
                             read_by_signs.Has(outputs.data[0]) && !read_by_others.Has(outputs.data[0]);
    if (feeds_signs) (*claimed)[i] = types[i];
    if (feeds_signs && IsNorm(types[i])) norms.Set(outputs, true);
    const bool goes_into_signs = feeds_signs || (*claimed)[i] == &kQuantizeOpType;
    (goes_into_signs ? read_by_signs : read_by_others).Set(inputs, true);
  }
  for (size_t i = 0; i < plan.size(); ++i) {
    if (is_packed_average[i] && norms.Has(plan[i].node->inputs->data[0])) (*claimed)[i] = types[i];
  }
}

// Removes a node from the claim if it is worth claiming only for a claimed reader of its output, but has none.
void DropUnreadNodes(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                     std::vector<const OpType*>* claimed) {
  TensorSet read(context);
  for (size_t i = plan.size(); i-- > 0;) {
    const OpType*& type = (*claimed)[i];
    if (type != nullptr && type->needs_reader && !read.Has(plan[i].node->outputs->data[0])) type = nullptr;
    if (type != nullptr) read.Set(*plan[i].node->inputs, true);
  }
}

}  // namespace

std::vector<int> ClaimNodes(const TfLiteContext& context, const std::vector<PlannedNode>& plan) {
  std::vector<const OpType*> types;
  for (const PlannedNode& planned : plan) types.push_back(FindOpType(context, planned));
  std::vector<const OpType*> claimed = ClaimForward(context, plan, types);
  ClaimSignFeeders(context, plan, types, &claimed);
  DropUnreadNodes(context, plan, &claimed);

  std::vector<int> indices;
  for (size_t i = 0; i < plan.size(); ++i) {
    if (claimed[i] != nullptr) indices.push_back(plan[i].index);
  }
  return indices;
}

bool CheckOrder(TfLiteContext* context, const std::vector<PlannedNode>& plan) {
  TensorSet unwritten(*context), written(*context);
  for (const PlannedNode& planned : plan) unwritten.Set(*planned.node->outputs, true);
  for (const PlannedNode& planned : plan) {
    // Checks that no tensor in `tensors` is in `set`. Reports the first one that is.
    const auto check = [&](const char* role, const TfLiteIntArray& tensors, const TensorSet& set, const char* problem) {
      const int* const end = tensors.data + tensors.size;
      const int* const found = std::find_if(tensors.data, end, [&](int tensor) { return set.Has(tensor); });
      if (found == end) return true;
      context->ReportError(context, "litebnn: %s, node %d: %s %d (tensor %d): %s. ", planned.OpName(), planned.index,
                           role, static_cast<int>(found - tensors.data), *found, problem);
      return false;
    };
    const TfLiteIntArray &inputs = *planned.node->inputs, &outputs = *planned.node->outputs;
    if (!check("input", inputs, unwritten, "expected a node before this one to write it, found this or a later one") ||
        !check("output", outputs, written, "expected no node before this one to write it, found one")) {
      return false;
    }
    unwritten.Set(outputs, false);
    written.Set(outputs, true);
  }
  return true;
}

}  // namespace litebnn
