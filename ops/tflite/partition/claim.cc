#include "tflite/partition/claim.h"

#include <algorithm>
#include <cstring>

#include "tflite/ops/op_list.h"

namespace litebnn {
namespace {

// Why a node is left to the runtime.
constexpr const char* kUnknownOp = "litebnn has no such op";
constexpr const char* kOtherForm = "litebnn has the op for other tensors or options";
constexpr const char* kNoWriter = "no claimed node with which it could be fused writes an input";
constexpr const char* kSharedInput = "another node reads the claimed node's output too";
constexpr const char* kNotOnlySigns = "the output is used for more than signs, and no claimed node writes an input";
constexpr const char* kNoPackedNorm = "the input is no batch norm whose signs are packed";
constexpr const char* kNoReader = "no claimed node reads the output";

// The claim of a node whose neighbours are not looked at yet.
Claim FindOpType(const TfLiteContext& context, const PlannedNode& planned) {
  const char* name = planned.registration->custom_name;
  const TfLiteNode& node = *planned.node;
  const char* reason = kUnknownOp;
  for (const OpType* type : kOpTypes) {
    if (type->builtin_code != planned.registration->builtin_code) continue;
    if (type->IsCustom()) {
      if (name != nullptr && std::strcmp(name, type->name) == 0) return {type, nullptr};
    } else if (name == nullptr) {
      if ((node.builtin_data != nullptr || !type->has_options) && type->computes(context, node)) {
        return {type, kNoWriter};
      }
      reason = kOtherForm;
    }
  }
  return {nullptr, reason};
}

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

// Claims nodes whatever their neighbours are: custom ops, and some builtin ops. These builtin ops are faster in litebnn
// even alone, or begin a chain of ops at whose end signs are packed.
void ClaimSeeds(const TfLiteContext& context, const std::vector<PlannedNode>& plan, std::vector<Claim>* claims) {
  TensorSet becomes_signs(context);
  for (size_t i = plan.size(); i-- > 0;) {
    const OpType* const type = (*claims)[i].type;
    if (type == nullptr) continue;
    const bool feeds = type->sign_feed != SignFeed::kNone && becomes_signs.Has(plan[i].node->outputs->data[0]);
    if (type->stands_alone || (feeds && type->sign_feed == SignFeed::kBegins)) (*claims)[i].reason = nullptr;
    if (feeds || type == &kQuantizeOpType) becomes_signs.Set(*plan[i].node->inputs, true);
  }
}

// Claims the nodes that a claimed node comes before.
void ClaimForward(const TfLiteContext& context, const std::vector<PlannedNode>& plan, std::vector<Claim>* claims) {
  std::vector<const OpType*> writers(context.tensors_size);
  const std::vector<TensorUse> uses = FindUses(context, plan);
  for (size_t i = 0; i < plan.size(); ++i) {
    const OpType* const type = (*claims)[i].type;
    const char*& reason = (*claims)[i].reason;
    if (type == nullptr) continue;
    const auto check = [&](int tensor) {
      const auto index = static_cast<size_t>(tensor);
      if (index >= writers.size() || writers[index] == nullptr) return kNoWriter;
      if (type->follows != nullptr && !type->follows(*writers[index])) return kNoWriter;
      return type->is_sole_reader && uses[index].reads != 1 ? kSharedInput : nullptr;
    };
    const TfLiteIntArray &inputs = *plan[i].node->inputs, &outputs = *plan[i].node->outputs;
    for (int k = 0; k < inputs.size && reason != nullptr; ++k) {
      const char* const found = check(inputs.data[k]);
      if (found != kNoWriter) reason = found;
    }
    if (reason != nullptr) continue;
    for (int k = 0; k < outputs.size; ++k) {
      const auto index = static_cast<size_t>(outputs.data[k]);
      if (index < writers.size()) writers[index] = type;
    }
  }
}

bool IsNorm(const OpType* type) { return type == &kScaleOpType || type == &kShiftOpType; }

// Marks the average pools of batch norms whose signs are packed. The packing can compute one average in the same pass.
std::vector<bool> FindPackedAverages(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                                     const std::vector<Claim>& claims) {
  std::vector<bool> found(plan.size());
  TensorSet norms(context), packed(context);
  for (size_t i = 0; i < plan.size(); ++i) {
    if (IsNorm(claims[i].type)) norms.Set(*plan[i].node->outputs, true);
    if (claims[i].type == &kQuantizeOpType) packed.Set(*plan[i].node->inputs, true);
  }
  for (size_t i = 0; i < plan.size(); ++i) {
    if (claims[i].type != &kFloatAverageOpType) continue;
    const int image = plan[i].node->inputs->data[0];
    found[i] = norms.Has(image) && packed.Has(image);
    packed.Set(*plan[i].node->inputs, false);
  }
  return found;
}

// Claims the nodes whose output is only needed to compute signs. One average pool may read the result of a batch norm
// too, and is then claimed with it.
void ClaimSignFeeders(const TfLiteContext& context, const std::vector<PlannedNode>& plan, std::vector<Claim>* claims) {
  const std::vector<bool> is_packed_average = FindPackedAverages(context, plan, *claims);
  TensorSet read_by_signs(context), read_by_others(context), norms(context);
  for (size_t i = plan.size(); i-- > 0;) {
    if (is_packed_average[i]) continue;
    auto& [type, reason] = (*claims)[i];
    const TfLiteIntArray &inputs = *plan[i].node->inputs, &outputs = *plan[i].node->outputs;
    const bool may_feed = type != nullptr && type->sign_feed == SignFeed::kPasses;
    const bool feeds_signs = may_feed && read_by_signs.Has(outputs.data[0]) && !read_by_others.Has(outputs.data[0]);
    if (may_feed && reason == kNoWriter) reason = kNotOnlySigns;
    if (feeds_signs) reason = nullptr;
    if (feeds_signs && IsNorm(type)) norms.Set(outputs, true);
    (feeds_signs || type == &kQuantizeOpType ? read_by_signs : read_by_others).Set(inputs, true);
  }
  for (size_t i = 0; i < plan.size(); ++i) {
    if ((*claims)[i].type != &kFloatAverageOpType) continue;
    const bool is_packed = is_packed_average[i] && norms.Has(plan[i].node->inputs->data[0]);
    (*claims)[i].reason = is_packed ? nullptr : kNoPackedNorm;
  }
}

// Removes a node from the claim if it is worth claiming only for a claimed reader of its output, but has none.
void DropUnreadNodes(const TfLiteContext& context, const std::vector<PlannedNode>& plan, std::vector<Claim>* claims) {
  TensorSet read(context);
  for (size_t i = plan.size(); i-- > 0;) {
    Claim& claim = (*claims)[i];
    if (!claim.is_claimed()) continue;
    if (claim.type->needs_reader && !read.Has(plan[i].node->outputs->data[0])) {
      claim.reason = kNoReader;
    } else {
      read.Set(*plan[i].node->inputs, true);
    }
  }
}

}  // namespace

std::vector<Claim> ClaimNodes(const TfLiteContext& context, const std::vector<PlannedNode>& plan) {
  std::vector<Claim> claims(plan.size());
  for (size_t i = 0; i < plan.size(); ++i) claims[i] = FindOpType(context, plan[i]);
  ClaimSeeds(context, plan, &claims);
  ClaimForward(context, plan, &claims);
  ClaimSignFeeders(context, plan, &claims);
  DropUnreadNodes(context, plan, &claims);
  return claims;
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
