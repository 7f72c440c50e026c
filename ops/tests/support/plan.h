// The nodes of an execution plan as a delegate sees them, without an interpreter.
#pragma once

#include <cstdlib>
#include <deque>
#include <memory>
#include <vector>

#include "tests/support/fake_builtins.h"
#include "tests/support/fake_runtime.h"
#include "tflite/ops/op_list.h"
#include "tflite/partition/claim.h"

namespace litebnn::testing {

class Plan {
 public:
  int AddTensor(const std::vector<int>& shape, const std::vector<int>& signature = {}) {
    TfLiteTensor tensor = {};
    tensor.type = kTfLiteFloat32;
    tensor.allocation_type = kTfLiteArenaRw;
    tensor.dims = NewArray(shape);
    if (!signature.empty()) tensor.dims_signature = NewArray(signature);
    return Append(tensor);
  }

  // Gives a tensor an empty shape signature, as runtimes do if all sizes of the tensor are fixed.
  void SetEmptySignature(int tensor) { this->tensor(tensor).dims_signature = NewArray({}); }

  // Gives a tensor these quantization arrays, which it shares with no other tensor.
  void SetGrids(int tensor, const GridArrays& grids) {
    if (grids.scales.empty() && grids.zero_points.empty()) return;
    grids_.push_back({nullptr, nullptr, grids.dimension});
    if (!grids.zero_points.empty()) grids_.back().zero_point = NewArray(grids.zero_points);
    if (!grids.scales.empty()) {
      float_arrays_.emplace_back(MakeFloatArray(grids.scales), std::free);
      grids_.back().scale = float_arrays_.back().get();
    }
    this->tensor(tensor).quantization = {kTfLiteAffineQuantization, &grids_.back()};
  }

  int AddTensorWithoutShape() { return Append({}); }

  void AddNode(int32_t code, const std::vector<int>& inputs, const std::vector<int>& outputs) {
    TfLiteNode node = {};
    node.inputs = NewArray(inputs);
    node.outputs = NewArray(outputs);
    nodes_.push_back(node);
    registrations_.emplace_back();
    registrations_.back().builtin_code = code;
    plan_.push_back({static_cast<int>(plan_.size()), &nodes_.back(), &registrations_.back()});
  }

  TfLiteTensor& tensor(int index) { return tensors_[static_cast<size_t>(index)]; }
  TfLiteNode& node(size_t index) { return nodes_[index]; }
  TfLiteRegistration& registration(size_t index) { return registrations_[index]; }
  const TfLiteContext& context() const { return context_; }
  const std::vector<PlannedNode>& nodes() const { return plan_; }

 private:
  int Append(const TfLiteTensor& tensor) {
    tensors_.push_back(tensor);
    context_.tensors = tensors_.data();
    context_.tensors_size = tensors_.size();
    return static_cast<int>(tensors_.size()) - 1;
  }

  TfLiteIntArray* NewArray(const std::vector<int>& values) {
    arrays_.emplace_back(MakeArray(values), std::free);
    return arrays_.back().get();
  }

  TfLiteContext context_ = {};
  std::vector<TfLiteTensor> tensors_;
  std::deque<TfLiteNode> nodes_;
  std::deque<TfLiteRegistration> registrations_;
  std::vector<std::unique_ptr<TfLiteIntArray, void (*)(void*)>> arrays_;
  std::vector<std::unique_ptr<TfLiteFloatArray, void (*)(void*)>> float_arrays_;
  std::deque<TfLiteAffineQuantization> grids_;
  std::vector<PlannedNode> plan_;
};

// The claims of a delegate that claims the nodes at these places of the plan.
inline std::vector<Claim> ClaimsOf(const Plan& plan, const std::vector<int>& places) {
  std::vector<Claim> claims(plan.nodes().size(), {nullptr, "left"});
  for (const int place : places) claims[static_cast<size_t>(place)] = {&kQuantizeOpType, nullptr};
  return claims;
}

}  // namespace litebnn::testing
