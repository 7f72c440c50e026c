// Tests of GatedSum: the parts of a gate, a PRELU and an ADD that a convolution can compute in its epilogue.
#include "tflite/ops/gated_sum.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace litebnn {
namespace {

using Shape = std::vector<int32_t>;
constexpr size_t kGate = 0, kAlpha = 1, kAddend = 2;

// The shapes of the operands of MUL, PRELU and ADD. If a shape is empty, the test leaves the op out.
struct Case {
  Shape image = {2, 3, 4, 64}, gate = {2, 1, 1, 64}, alpha = {1, 1, 64}, addend = {2, 3, 4, 64};
  bool rectifies_product = false, rectifies_sum = false, follows_convolution = true;
};

Tensor FloatTensor(const Shape& shape) {
  Tensor tensor;
  tensor.type = kTfLiteFloat32;
  tensor.shape = shape;
  return tensor;
}

std::unique_ptr<GatedSum> Resized(const Case& c) {
  std::vector<Tensor> tensors = {FloatTensor(c.gate), FloatTensor(c.alpha), FloatTensor(c.addend)};
  Tensor output = FloatTensor(c.image);
  const TfLiteAddParams params = {c.rectifies_sum ? kTfLiteActRelu : kTfLiteActNone};
  const char* const names[kMaxInputNames] = {"input"};
  Node node = {nullptr, "an op", 0, names, {}, {&output}, nullptr, 0, &params};
  for (const Tensor& tensor : tensors) node.inputs.push_back(tensor.shape.empty() ? nullptr : &tensor);
  auto sum =
      std::make_unique<GatedSum>(GatedSum::Roles{kGate, kAlpha, kAddend, c.rectifies_product, c.follows_convolution});
  EXPECT_TRUE(sum->Resize(node));
  return sum;
}

bool IsEpilogue(const Case& c) { return Resized(c)->is_epilogue(); }

TEST(GatedSum, IsAnEpilogue) {
  EXPECT_TRUE(IsEpilogue({}));
  for (const Shape& gate : {Shape{1, 1, 1, 64}, {64}, {1, 64}}) {
    Case c;
    c.gate = gate;
    EXPECT_TRUE(IsEpilogue(c)) << gate.size();
  }
  Case without_gate, without_alpha;
  without_gate.gate = {};
  without_alpha.alpha = {};
  EXPECT_TRUE(IsEpilogue(without_gate));
  EXPECT_TRUE(IsEpilogue(without_alpha));
}

TEST(GatedSum, OfOtherShapesIsNoEpilogue) {
  for (const Shape& gate : {Shape{2, 3, 1, 64}, {1, 1, 4, 64}, {2, 3, 4, 64}}) {
    Case c;
    c.gate = gate;
    EXPECT_FALSE(IsEpilogue(c)) << gate[1];
  }
  Case more_images, smaller_addend;
  smaller_addend.addend = {1, 3, 4, 64};
  more_images.image = {1, 3, 4, 64};
  EXPECT_FALSE(IsEpilogue(more_images));
  EXPECT_FALSE(IsEpilogue(smaller_addend));
  EXPECT_FALSE(Resized(smaller_addend)->overwrites_addend());
  EXPECT_TRUE(Resized({})->overwrites_addend());
}

TEST(GatedSum, WithRelusOrNoAdditionIsNoEpilogue) {
  Case rectified_product, rectified_sum, without_addend;
  rectified_product.rectifies_product = true;
  rectified_sum.rectifies_sum = true;
  without_addend.addend = {};
  EXPECT_FALSE(IsEpilogue(rectified_product));
  EXPECT_FALSE(IsEpilogue(rectified_sum));
  EXPECT_FALSE(IsEpilogue(without_addend));
}

TEST(GatedSum, OfAnAdditionAloneIsOne) {
  Case c;
  c.gate = c.alpha = {};
  c.rectifies_sum = true;
  const auto sum = Resized(c);
  EXPECT_TRUE(sum->is_epilogue());
  EXPECT_FALSE(sum->gates());
  EXPECT_EQ(sum->OwnedBytes(), 0u);
  const float addend = 0.0f;
  const void* const inputs[] = {nullptr, nullptr, &addend};
  const Bconv2dEpilogue epilogue = sum->EpilogueOf(inputs);
  EXPECT_EQ(epilogue.gate, nullptr);
  EXPECT_EQ(epilogue.addend, &addend);
  EXPECT_TRUE(epilogue.rectify_sum);
  c.addend = {1, 3, 4, 64};
  EXPECT_FALSE(IsEpilogue(c));
}

TEST(GatedSum, EpilogueReplacesMissingOperandsByOnes) {
  const float values[3] = {};
  const void* const inputs[] = {values, values + 1, values + 2};
  const Bconv2dEpilogue epilogue = Resized({})->EpilogueOf(inputs);
  EXPECT_EQ(epilogue.gate, values);
  EXPECT_EQ(epilogue.gate_stride, 64);
  EXPECT_EQ(epilogue.slope, values + 1);
  EXPECT_EQ(epilogue.addend, values + 2);
  EXPECT_FALSE(epilogue.rectify_sum);

  Case c;
  c.gate = {64};
  c.alpha = {};
  const auto without_alpha = Resized(c);
  EXPECT_EQ(without_alpha->EpilogueOf(inputs).gate_stride, 0);
  EXPECT_EQ(without_alpha->OwnedBytes(), 64 * sizeof(float));
  for (int i = 0; i < 64; ++i) EXPECT_EQ(without_alpha->EpilogueOf(inputs).slope[i], 1.0f);
}

}  // namespace
}  // namespace litebnn
