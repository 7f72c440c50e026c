#include "tflite/partition/claim.h"

#include <algorithm>

#include "tflite/ops/op_list.h"

namespace litebnn {

namespace {

// Tensors by index; what is no index of a tensor is none of them. Nodes may share any number of inputs, so that looking
// one up takes little.
class TensorSet {
 public:
  explicit TensorSet(const TfLiteContext& context) : has_(context.tensors_size) {}
  bool Has(int tensor) const { return static_cast<size_t>(tensor) < has_.size() && has_[static_cast<size_t>(tensor)]; }
  void Set(const TfLiteIntArray& tensors, bool has) {
    for (int i = 0; i < tensors.size; ++i) {
      const auto tensor = static_cast<size_t>(tensors.data[i]);
      if (tensor < has_.size()) has_[tensor] = has;
    }
  }

 private:
  std::vector<char> has_;
};

// Whether something begins in each node that is the library's own: in its ops, and in those of which it makes signs.
std::vector<bool> FindBeginnings(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                                 const std::vector<const OpType*>& types) {
  std::vector<bool> begins(plan.size());
  TensorSet made_into_signs(context);
  for (size_t i = plan.size(); i-- > 0;) {
    if (types[i] == nullptr) continue;
    const SignFeed feed = types[i]->sign_feed;
    const bool feeds = feed != SignFeed::kNone && made_into_signs.Has(plan[i].node->outputs->data[0]);
    begins[i] = types[i]->IsCustom() || (feeds && feed == SignFeed::kBegins);
    if (feeds || types[i] == &kQuantizeOpType) made_into_signs.Set(*plan[i].node->inputs, true);
  }
  return begins;
}

// The nodes in which something begins, and those that go on with it; null for others.
std::vector<const OpType*> ClaimForward(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                                        const std::vector<const OpType*>& types) {
  const std::vector<bool> begins = FindBeginnings(context, plan, types);
  std::vector<const OpType*> claimed(plan.size());
  std::vector<const OpType*> writers(context.tensors_size);
  for (size_t i = 0; i < plan.size(); ++i) {
    const OpType* type = types[i];
    if (type == nullptr) continue;
    const TfLiteIntArray &inputs = *plan[i].node->inputs, &outputs = *plan[i].node->outputs;
    const auto is_claimed = [&](int tensor) {
      const auto index = static_cast<size_t>(tensor);
      if (index >= writers.size() || writers[index] == nullptr) return false;
      return type->follows == nullptr || type->follows(*writers[index]);
    };
    if (!begins[i] && std::none_of(inputs.data, inputs.data + inputs.size, is_claimed)) continue;
    claimed[i] = type;
    for (int k = 0; k < outputs.size; ++k) {
      const auto index = static_cast<size_t>(outputs.data[k]);
      if (index < writers.size()) writers[index] = type;
    }
  }
  return claimed;
}

// Adds the nodes that nothing but signs is made of.
void ClaimWhatFeedsSigns(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                         const std::vector<const OpType*>& types, std::vector<const OpType*>* claimed) {
  TensorSet read_by_signs(context), read_by_others(context);
  for (size_t i = plan.size(); i-- > 0;) {
    const TfLiteIntArray &inputs = *plan[i].node->inputs, &outputs = *plan[i].node->outputs;
    const bool feeds_signs = types[i] != nullptr && types[i]->sign_feed == SignFeed::kPasses &&
                             read_by_signs.Has(outputs.data[0]) && !read_by_others.Has(outputs.data[0]);
    if (feeds_signs) (*claimed)[i] = types[i];
    const bool goes_into_signs = feeds_signs || (*claimed)[i] == &kQuantizeOpType;
    (goes_into_signs ? read_by_signs : read_by_others).Set(inputs, true);
  }
}

// Leaves the nodes that want a reader and have none among those that are claimed.
void LeaveEnds(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
               std::vector<const OpType*>* claimed) {
  TensorSet read(context);
  for (size_t i = plan.size(); i-- > 0;) {
    const OpType*& type = (*claimed)[i];
    if (type != nullptr && type->wants_reader && !read.Has(plan[i].node->outputs->data[0])) type = nullptr;
    if (type != nullptr) read.Set(*plan[i].node->inputs, true);
  }
}

}  // namespace

std::vector<int> ClaimNodes(const TfLiteContext& context, const std::vector<PlannedNode>& plan) {
  std::vector<const OpType*> types;
  for (const PlannedNode& planned : plan) types.push_back(FindOpType(context, planned));
  std::vector<const OpType*> claimed = ClaimForward(context, plan, types);
  ClaimWhatFeedsSigns(context, plan, types, &claimed);
  LeaveEnds(context, plan, &claimed);

  std::vector<int> indices;
  for (size_t i = 0; i < plan.size(); ++i) {
    if (claimed[i] != nullptr) indices.push_back(plan[i].index);
  }
  return indices;
}

bool CheckOrder(TfLiteContext* context, const std::vector<PlannedNode>& plan) {
  TensorSet to_come(*context), written(*context);
  for (const PlannedNode& planned : plan) to_come.Set(*planned.node->outputs, true);
  for (const PlannedNode& planned : plan) {
    // Whether none of the tensors is in the set. Reports one that is.
    const auto check = [&](const char* role, const TfLiteIntArray& tensors, const TensorSet& set, const char* problem) {
      const int* const end = tensors.data + tensors.size;
      const int* const found = std::find_if(tensors.data, end, [&](int tensor) { return set.Has(tensor); });
      if (found == end) return true;
      context->ReportError(context, "litebnn: %s, node %d: %s %d (tensor %d): %s. ", planned.OpName(), planned.index,
                           role, static_cast<int>(found - tensors.data), *found, problem);
      return false;
    };
    const TfLiteIntArray &inputs = *planned.node->inputs, &outputs = *planned.node->outputs;
    if (!check("input", inputs, to_come, "expected a node before this one to write it, found this or a later one") ||
        !check("output", outputs, written, "expected no node before this one to write it, found one")) {
      return false;
    }
    to_come.Set(outputs, false);
    written.Set(outputs, true);
  }
  return true;
}

}  // namespace litebnn
