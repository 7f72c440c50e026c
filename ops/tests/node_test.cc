#include "tflite/runtime/node.h"

#include <gtest/gtest.h>

#include <limits>

namespace litebnn {
namespace {

size_t Bytes(TfLiteType type, const std::vector<int32_t>& shape) {
  Tensor tensor;
  tensor.type = type;
  tensor.shape = shape;
  return TensorBytes(tensor);
}

TEST(TensorBytes, AreThoseOfAllValues) {
  EXPECT_EQ(Bytes(kTfLiteFloat32, {}), 4u);
  EXPECT_EQ(Bytes(kTfLiteFloat32, {2, 3, 5}), 120u);
  EXPECT_EQ(Bytes(kTfLiteInt8, {1, 7}), 7u);
  EXPECT_EQ(Bytes(kTfLiteInt8, {std::numeric_limits<int32_t>::max()}), size_t{0x7fffffff});
}

TEST(TensorBytes, AreNoneWhereTheyAreNotKnown) {
  EXPECT_EQ(Bytes(kTfLiteString, {2}), 0u);
  EXPECT_EQ(Bytes(kTfLiteFloat32, {2, 0}), 0u);
  EXPECT_EQ(Bytes(kTfLiteFloat32, {2, -1}), 0u);
  EXPECT_EQ(Bytes(kTfLiteInt8, {1 << 16, 1 << 15}), 0u);
}

TEST(ShapeText, ShowsEightSizes) {
  EXPECT_EQ(ShapeText({}), "[]");
  EXPECT_EQ(ShapeText({3}), "[3]");
  EXPECT_EQ(ShapeText({1, 2, 3, 4, 5, 6, 7, 8}), "[1, 2, 3, 4, 5, 6, 7, 8]");
  EXPECT_EQ(ShapeText({1, 2, 3, 4, 5, 6, 7, 8, 9}), "[1, 2, 3, 4, 5, 6, 7, 8, ...]");
}

}  // namespace
}  // namespace litebnn
