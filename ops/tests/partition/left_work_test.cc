#include "tflite/partition/left_work.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <vector>

#include "tests/support/fake_builtins.h"
#include "tflite/runtime/node.h"

namespace litebnn::testing {
namespace {

constexpr int32_t kWhile = 119, kBatchMatMul = 126;

// Nodes that no interpreter runs.
class Plan {
 public:
  int AddTensor(const std::vector<int>& shape, const std::vector<int>& signature = {}) {
    TfLiteTensor tensor = {};
    tensor.dims = NewArray(shape);
    if (!signature.empty()) tensor.dims_signature = NewArray(signature);
    tensors_.push_back(tensor);
    return static_cast<int>(tensors_.size()) - 1;
  }

  // As runtimes have it where no size may change.
  void SetEmptySignature(int tensor) { tensors_[static_cast<size_t>(tensor)].dims_signature = NewArray({}); }

  int AddTensorWithoutShape() {
    tensors_.push_back({});
    return static_cast<int>(tensors_.size()) - 1;
  }

  void AddNode(int32_t code, const std::vector<int>& inputs, const std::vector<int>& outputs) {
    TfLiteNode node = {};
    node.inputs = NewArray(inputs);
    node.outputs = NewArray(outputs);
    nodes_.push_back(node);
    registrations_.emplace_back();
    registrations_.back().builtin_code = code;
  }

  double Cycles(const std::vector<int>& claimed = {}) {
    TfLiteContext context = {};
    context.tensors = tensors_.data();
    context.tensors_size = tensors_.size();
    std::vector<PlannedNode> plan;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      plan.push_back({static_cast<int>(i), &nodes_[i], &registrations_[i]});
    }
    return LeftCycles(context, plan, claimed);
  }

 private:
  TfLiteIntArray* NewArray(const std::vector<int>& values) {
    arrays_.emplace_back(MakeArray(values), std::free);
    return arrays_.back().get();
  }

  std::vector<TfLiteTensor> tensors_;
  std::vector<TfLiteNode> nodes_;
  std::vector<TfLiteRegistration> registrations_;
  std::vector<std::unique_ptr<TfLiteIntArray, void (*)(void*)>> arrays_;
};

TEST(LeftWork, LayersTakeTheirMultiplyAdds) {
  Plan conv;
  conv.AddNode(kTfLiteBuiltinConv2d, {conv.AddTensor({1, 10, 10, 4}), conv.AddTensor({16, 3, 3, 4})},
               {conv.AddTensor({1, 8, 8, 16})});
  EXPECT_DOUBLE_EQ(conv.Cycles(), 8 * 8 * 16 * 36 / 8.0);
  EXPECT_EQ(conv.Cycles({0}), 0);
  Plan dense;
  dense.AddNode(kTfLiteBuiltinFullyConnected, {dense.AddTensor({1, 100}), dense.AddTensor({10, 100})},
                {dense.AddTensor({1, 10})});
  EXPECT_DOUBLE_EQ(dense.Cycles(), 10 * 100 / 8.0);
  Plan scalar;
  scalar.AddNode(kTfLiteBuiltinFullyConnected, {scalar.AddTensor({100}), scalar.AddTensor({1, 100})},
                 {scalar.AddTensor({})});
  EXPECT_DOUBLE_EQ(scalar.Cycles(), 100 / 8.0);
}

TEST(LeftWork, OthersTakeTheirValues) {
  Plan plan;
  const int image = plan.AddTensor({1, 8, 8, 16}), pooled = plan.AddTensor({1, 4, 4, 16});
  plan.AddNode(kTfLiteBuiltinMaxPool2d, {image}, {pooled});
  plan.AddNode(kTfLiteBuiltinAdd, {pooled, pooled}, {plan.AddTensor({1, 4, 4, 16})});
  EXPECT_DOUBLE_EQ(plan.Cycles(), 1024 + 256);
  EXPECT_DOUBLE_EQ(plan.Cycles({0}), 256);
}

TEST(LeftWork, AnEmptySignatureSaysNothing) {
  Plan plan;
  const int tensor = plan.AddTensor({1, 8});
  plan.SetEmptySignature(tensor);
  plan.AddNode(kTfLiteBuiltinAdd, {tensor, tensor}, {tensor});
  EXPECT_DOUBLE_EQ(plan.Cycles(), 8);
}

TEST(LeftWork, WhatIsNotKnownMayBeAnything) {
  for (int32_t code : {kWhile, kBatchMatMul, kTfLiteBuiltinCustom}) {
    Plan plan;
    plan.AddNode(code, {plan.AddTensor({1, 8})}, {plan.AddTensor({1, 8})});
    EXPECT_TRUE(std::isinf(plan.Cycles())) << code;
  }
  Plan batch;
  batch.AddNode(kTfLiteBuiltinAdd, {batch.AddTensor({1, 8}, {-1, 8})}, {batch.AddTensor({1, 8}, {-1, 8})});
  EXPECT_TRUE(std::isinf(batch.Cycles()));
  // Tensors of which the runtime knows no shape yet.
  Plan shapeless;
  const int none = shapeless.AddTensorWithoutShape();
  shapeless.AddNode(kTfLiteBuiltinConv2d, {shapeless.AddTensor({1, 8, 8, 4}), shapeless.AddTensor({4, 1, 1, 4})},
                    {none});
  EXPECT_TRUE(std::isinf(shapeless.Cycles()));
  Plan outside;
  outside.AddNode(kTfLiteBuiltinConv2d, {outside.AddTensor({1, 8, 8, 4}), 77}, {outside.AddTensor({1, 8, 8, 4})});
  EXPECT_TRUE(std::isinf(outside.Cycles()));
  // An op that has another number of outputs than those above.
  for (const int outputs : {0, 2}) {
    Plan other;
    const int image = other.AddTensor({1, 8});
    other.AddNode(kTfLiteBuiltinAdd, {image, image}, std::vector<int>(static_cast<size_t>(outputs), image));
    EXPECT_TRUE(std::isinf(other.Cycles())) << outputs;
  }
}

TEST(LeftWork, IsKnownOfTensorsOfAsManyDimensionsAsTheOpsTake) {
  for (const int rank : {kMaxRank, kMaxRank + 1}) {
    Plan plan;
    const int tensor = plan.AddTensor(std::vector<int>(static_cast<size_t>(rank), 1));
    plan.AddNode(kTfLiteBuiltinAdd, {tensor, tensor}, {tensor});
    EXPECT_EQ(std::isinf(plan.Cycles()), rank > kMaxRank) << rank;
  }
}

}  // namespace
}  // namespace litebnn::testing
