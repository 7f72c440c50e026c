#include "tflite/partition/claim.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tflite/ops/op_list.h"
#include "tflite/partition/repack_budget.h"

namespace litebnn {

std::vector<int> ClaimNodes(const TfLiteContext& context, const std::vector<PlannedNode>& plan) {
  std::vector<int> claimed;
  std::unordered_map<int, const OpType*> writers;  // by tensor
  for (const PlannedNode& planned : plan) {
    const OpType* type = FindOpType(context, planned);
    if (type == nullptr) continue;
    const TfLiteIntArray &inputs = *planned.node->inputs, &outputs = *planned.node->outputs;
    const auto is_claimed = [&](int tensor) {
      const auto writer = writers.find(tensor);
      return writer != writers.end() && (type->producer == nullptr || type->producer == writer->second);
    };
    if (!type->IsCustom() && std::none_of(inputs.data, inputs.data + inputs.size, is_claimed)) continue;
    claimed.push_back(planned.index);
    for (int i = 0; i < outputs.size; ++i) writers[outputs.data[i]] = type;
  }
  return claimed;
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
