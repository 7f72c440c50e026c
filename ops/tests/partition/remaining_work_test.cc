#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <vector>

#include "tests/support/plan.h"
#include "tflite/runtime/node.h"

namespace litebnn::testing {
namespace {

constexpr int32_t kBatchMatMul = 126;

double Cycles(const Plan& plan, const std::vector<int>& claimed = {}) {
  return RemainingCycles(plan.context(), plan.nodes(), ClaimsOf(plan, claimed));
}

TEST(LeftWork, LayersTakeTheirMultiplyAdds) {
  Plan conv;
  conv.AddNode(kTfLiteBuiltinConv2d, {conv.AddTensor({1, 10, 10, 4}), conv.AddTensor({16, 3, 3, 4})},
               {conv.AddTensor({1, 8, 8, 16})});
  EXPECT_DOUBLE_EQ(Cycles(conv), 8 * 8 * 16 * 36 / 8.0);
  EXPECT_EQ(Cycles(conv, {0}), 0);
  Plan dense;
  dense.AddNode(kTfLiteBuiltinFullyConnected, {dense.AddTensor({1, 100}), dense.AddTensor({10, 100})},
                {dense.AddTensor({1, 10})});
  EXPECT_DOUBLE_EQ(Cycles(dense), 10 * 100 / 8.0);
  Plan scalar;
  scalar.AddNode(kTfLiteBuiltinFullyConnected, {scalar.AddTensor({100}), scalar.AddTensor({1, 100})},
                 {scalar.AddTensor({})});
  EXPECT_DOUBLE_EQ(Cycles(scalar), 100 / 8.0);
}

TEST(LeftWork, OthersTakeTheirValues) {
  Plan plan;
  const int image = plan.AddTensor({1, 8, 8, 16}), pooled = plan.AddTensor({1, 4, 4, 16});
  plan.AddNode(kTfLiteBuiltinMaxPool2d, {image}, {pooled});
  plan.AddNode(kTfLiteBuiltinAdd, {pooled, pooled}, {plan.AddTensor({1, 4, 4, 16})});
  EXPECT_DOUBLE_EQ(Cycles(plan), 1024 + 256);
  EXPECT_DOUBLE_EQ(Cycles(plan, {0}), 256);
}

TEST(LeftWork, AnEmptySignatureSaysNothing) {
  Plan plan;
  const int tensor = plan.AddTensor({1, 8});
  plan.SetEmptySignature(tensor);
  plan.AddNode(kTfLiteBuiltinAdd, {tensor, tensor}, {tensor});
  EXPECT_DOUBLE_EQ(Cycles(plan), 8);
}

TEST(LeftWork, WhatIsNotKnownMayBeAnything) {
  for (int32_t code : {kTfLiteBuiltinWhile, kBatchMatMul, kTfLiteBuiltinCustom}) {
    Plan plan;
    plan.AddNode(code, {plan.AddTensor({1, 8})}, {plan.AddTensor({1, 8})});
    EXPECT_TRUE(std::isinf(Cycles(plan))) << code;
  }
  Plan batch;
  batch.AddNode(kTfLiteBuiltinAdd, {batch.AddTensor({1, 8}, {-1, 8})}, {batch.AddTensor({1, 8}, {-1, 8})});
  EXPECT_TRUE(std::isinf(Cycles(batch)));
  // The runtime does not know the shape of the convolution's output yet.
  Plan shapeless;
  const int none = shapeless.AddTensorWithoutShape();
  shapeless.AddNode(kTfLiteBuiltinConv2d, {shapeless.AddTensor({1, 8, 8, 4}), shapeless.AddTensor({4, 1, 1, 4})},
                    {none});
  EXPECT_TRUE(std::isinf(Cycles(shapeless)));
  Plan outside;
  outside.AddNode(kTfLiteBuiltinConv2d, {outside.AddTensor({1, 8, 8, 4}), 77}, {outside.AddTensor({1, 8, 8, 4})});
  EXPECT_TRUE(std::isinf(Cycles(outside)));
  // Each of these plans contains an ADD with no output or two outputs, so its work is unknown.
  for (const int outputs : {0, 2}) {
    Plan other;
    const int image = other.AddTensor({1, 8});
    other.AddNode(kTfLiteBuiltinAdd, {image, image}, std::vector<int>(static_cast<size_t>(outputs), image));
    EXPECT_TRUE(std::isinf(Cycles(other))) << outputs;
  }
}

TEST(LeftWork, IsKnownOfTensorsOfAsManyDimensionsAsTheOpsTake) {
  for (const int rank : {kMaxRank, kMaxRank + 1}) {
    Plan plan;
    const int tensor = plan.AddTensor(std::vector<int>(static_cast<size_t>(rank), 1));
    plan.AddNode(kTfLiteBuiltinAdd, {tensor, tensor}, {tensor});
    EXPECT_EQ(std::isinf(Cycles(plan)), rank > kMaxRank) << rank;
  }
}

}  // namespace
}  // namespace litebnn::testing
