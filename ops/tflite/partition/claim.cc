#include "tflite/partition/claim.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tflite/ops/op_list.h"
#include "tflite/partition/repack_budget.h"

namespace litebnn {

namespace {

// The nodes in which something begins that is the library's own, and those that go on with it; null for others.
std::vector<const OpType*> ClaimForward(const std::vector<PlannedNode>& plan, const std::vector<const OpType*>& types) {
  std::vector<const OpType*> claimed(plan.size());
  std::unordered_map<int, const OpType*> writers;  // by tensor
  for (size_t i = 0; i < plan.size(); ++i) {
    const OpType* type = types[i];
    if (type == nullptr || type->feeds_signs) continue;
    const TfLiteIntArray &inputs = *plan[i].node->inputs, &outputs = *plan[i].node->outputs;
    const auto is_claimed = [&](int tensor) {
      const auto writer = writers.find(tensor);
      return writer != writers.end() && (type->producer == nullptr || type->producer == writer->second);
    };
    if (!type->IsCustom() && std::none_of(inputs.data, inputs.data + inputs.size, is_claimed)) continue;
    claimed[i] = type;
    for (int k = 0; k < outputs.size; ++k) writers[outputs.data[k]] = type;
  }
  return claimed;
}

// Adds the nodes that nothing but signs is made of.
void ClaimWhatFeedsSigns(const std::vector<PlannedNode>& plan, const std::vector<const OpType*>& types,
                         std::vector<const OpType*>* claimed) {
  std::unordered_set<int> read_by_signs, read_by_others;
  for (size_t i = plan.size(); i-- > 0;) {
    const TfLiteIntArray &inputs = *plan[i].node->inputs, &outputs = *plan[i].node->outputs;
    const bool feeds_signs = types[i] != nullptr && types[i]->feeds_signs &&
                             read_by_signs.count(outputs.data[0]) != 0 && read_by_others.count(outputs.data[0]) == 0;
    if (feeds_signs) (*claimed)[i] = types[i];
    const bool goes_into_signs = feeds_signs || (*claimed)[i] == &kQuantizeOpType;
    (goes_into_signs ? read_by_signs : read_by_others).insert(inputs.data, inputs.data + inputs.size);
  }
}

}  // namespace

std::vector<int> ClaimNodes(const TfLiteContext& context, const std::vector<PlannedNode>& plan) {
  std::vector<const OpType*> types;
  for (const PlannedNode& planned : plan) types.push_back(FindOpType(context, planned));
  std::vector<const OpType*> claimed = ClaimForward(plan, types);
  ClaimWhatFeedsSigns(plan, types, &claimed);

  std::vector<int> indices;
  for (size_t i = 0; i < plan.size(); ++i) {
    if (claimed[i] != nullptr) indices.push_back(plan[i].index);
  }
  return indices;
}

bool CheckOrder(TfLiteContext* context, const std::vector<PlannedNode>& plan) {
  std::unordered_set<int> to_come;
  for (const PlannedNode& planned : plan) {
    const TfLiteIntArray& outputs = *planned.node->outputs;
    to_come.insert(outputs.data, outputs.data + outputs.size);
  }
  for (const PlannedNode& planned : plan) {
    const TfLiteIntArray &inputs = *planned.node->inputs, &outputs = *planned.node->outputs;
    for (int i = 0; i < inputs.size; ++i) {
      const int tensor = inputs.data[i];
      if (tensor == kOptionalTensor || to_come.count(tensor) == 0) continue;
      context->ReportError(context,
                           "litebnn: %s, node %d: input %d (tensor %d): expected a node before this one to write it, "
                           "found this or a later one. ",
                           planned.OpName(), planned.index, i, tensor);
      return false;
    }
    for (int i = 0; i < outputs.size; ++i) to_come.erase(outputs.data[i]);
  }
  return true;
}

bool CheckConstants(TfLiteContext* context, const std::vector<int>& claimed) {
  RepackBudget budget(*context);
  return std::all_of(claimed.begin(), claimed.end(), [&](int index) {
    PlannedNode planned;
    return ReadNode(context, index, &planned) && budget.Take(context, *planned.node);
  });
}

}  // namespace litebnn
