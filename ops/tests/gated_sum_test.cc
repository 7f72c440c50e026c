// What of a gate, a PRELU and an ADD a convolution can do with its output.
#include "tflite/ops/gated_sum.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace litebnn {
namespace {

using Shape = std::vector<int32_t>;
constexpr size_t kGate = 0, kAlpha = 1, kAddend = 2;

// What stands behind an image; what is empty is left out.
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

bool IsFinish(const Case& c) { return Resized(c)->is_finish(); }

TEST(GatedSum, IsAFinish) {
  EXPECT_TRUE(IsFinish({}));
  for (const Shape& gate : {Shape{1, 1, 1, 64}, {64}, {1, 64}}) {
    Case c;
    c.gate = gate;
    EXPECT_TRUE(IsFinish(c)) << gate.size();
  }
  Case without_gate, without_alpha;
  without_gate.gate = {};
  without_alpha.alpha = {};
  EXPECT_TRUE(IsFinish(without_gate));
  EXPECT_TRUE(IsFinish(without_alpha));
}

TEST(GatedSum, OfOtherShapesIsNoFinish) {
  for (const Shape& gate : {Shape{2, 3, 1, 64}, {1, 1, 4, 64}, {2, 3, 4, 64}}) {
    Case c;
    c.gate = gate;
    EXPECT_FALSE(IsFinish(c)) << gate[1];
  }
  Case of_more_images, of_another_addend;
  of_another_addend.addend = {1, 3, 4, 64};
  of_more_images.image = {1, 3, 4, 64};
  EXPECT_FALSE(IsFinish(of_more_images));
  EXPECT_FALSE(IsFinish(of_another_addend));
  EXPECT_FALSE(Resized(of_another_addend)->overwrites_addend());
  EXPECT_TRUE(Resized({})->overwrites_addend());
}

TEST(GatedSum, WithRelusOrNoAdditionIsNoFinish) {
  Case rectified_product, rectified_sum, without_addend;
  rectified_product.rectifies_product = true;
  rectified_sum.rectifies_sum = true;
  without_addend.addend = {};
  EXPECT_FALSE(IsFinish(rectified_product));
  EXPECT_FALSE(IsFinish(rectified_sum));
  EXPECT_FALSE(IsFinish(without_addend));
}

TEST(GatedSum, OfAnAdditionAloneIsOne) {
  Case c;
  c.gate = c.alpha = {};
  c.rectifies_sum = true;
  const auto sum = Resized(c);
  EXPECT_TRUE(sum->is_finish());
  EXPECT_FALSE(sum->gates());
  EXPECT_EQ(sum->OwnedBytes(), 0u);
  const float addend = 0.0f;
  const void* const inputs[] = {nullptr, nullptr, &addend};
  const Bconv2dFinish finish = sum->FinishOf(inputs);
  EXPECT_EQ(finish.gate, nullptr);
  EXPECT_EQ(finish.addend, &addend);
  EXPECT_TRUE(finish.rectify_sum);
  c.addend = {1, 3, 4, 64};
  EXPECT_FALSE(IsFinish(c));
}

TEST(GatedSum, FinishHasWhatIsThereAndOnesInThePlaceOfTheRest) {
  const float values[3] = {};
  const void* const inputs[] = {values, values + 1, values + 2};
  const Bconv2dFinish finish = Resized({})->FinishOf(inputs);
  EXPECT_EQ(finish.gate, values);
  EXPECT_EQ(finish.gate_stride, 64);
  EXPECT_EQ(finish.slope, values + 1);
  EXPECT_EQ(finish.addend, values + 2);
  EXPECT_FALSE(finish.rectify_sum);

  Case c;
  c.gate = {64};
  c.alpha = {};
  const auto without_alpha = Resized(c);
  EXPECT_EQ(without_alpha->FinishOf(inputs).gate_stride, 0);
  EXPECT_EQ(without_alpha->OwnedBytes(), 64 * sizeof(float));
  for (int i = 0; i < 64; ++i) EXPECT_EQ(without_alpha->FinishOf(inputs).slope[i], 1.0f);
}

}  // namespace
}  // namespace litebnn
