#include "tflite/ops/op_list.h"

#include <algorithm>
#include <cmath>

namespace litebnn {
namespace {

bool IsOfType(const TfLiteContext& context, int index, TfLiteType type) {
  const TfLiteTensor* const tensor = FindTensor(context, index);
  return tensor != nullptr && tensor->type == type;
}

bool IsComputed(const TfLiteContext& context, int index, TfLiteType type) {
  return IsOfType(context, index, type) && !IsConstant(context.tensors[index]);
}

}  // namespace

const TfLiteTensor* FindTensor(const TfLiteContext& context, int index) {
  const bool is_there = index >= 0 && static_cast<size_t>(index) < context.tensors_size;
  return is_there && context.tensors[index].dims != nullptr ? &context.tensors[index] : nullptr;
}

bool IsComputedFloat(const TfLiteContext& context, int index) { return IsComputed(context, index, kTfLiteFloat32); }

bool HasChannelValues(const TfLiteContext& context, const TfLiteNode& node, TfLiteType type) {
  const TfLiteIntArray &inputs = *node.inputs, &outputs = *node.outputs;
  if (inputs.size != 2 || outputs.size != 1) return false;
  if (!IsComputed(context, inputs.data[0], type) || !IsComputed(context, outputs.data[0], type)) return false;
  if (!IsOfType(context, inputs.data[1], type) || !IsConstant(context.tensors[inputs.data[1]])) return false;
  const TfLiteIntArray &shape = *context.tensors[inputs.data[0]].dims, &vector = *context.tensors[inputs.data[1]].dims;
  return vector.size > 0 && vector.size <= shape.size && vector.data[vector.size - 1] == shape.data[shape.size - 1] &&
         std::all_of(vector.data, vector.data + vector.size - 1, [](int size) { return size == 1; });
}

bool AreComputedImages(const TfLiteContext& context, const TfLiteNode& node, size_t inputs) {
  const auto is_computed_image = [&](int index) {
    return IsComputedFloat(context, index) && context.tensors[index].dims->size == 4;
  };
  const auto are = [&](const TfLiteIntArray& indices, size_t count) {
    return static_cast<size_t>(indices.size) == count &&
           std::all_of(indices.data, indices.data + count, is_computed_image);
  };
  return are(*node.inputs, inputs) && are(*node.outputs, 1);
}

bool CheckChannelValues(const Node& node, size_t position, int32_t channels, TfLiteType type) {
  const std::vector<int32_t>& shape = node.Input(position)->shape;
  if (!node.CheckInputType(position, {type})) return false;
  if (CountValues(shape, 0, shape.size()) == channels) return true;
  return node.InputError(position, "shape: expected a value for each of %d channels, found %s", channels,
                         ShapeText(shape).c_str());
}

bool IsValid(const Int8Grid& grid) {
  return std::isfinite(grid.scale) && grid.scale > 0 && grid.zero_point >= -128 && grid.zero_point <= 127;
}

bool IsComputedInt8Image(const TfLiteContext& context, int index) {
  return IsComputed(context, index, kTfLiteInt8) && context.tensors[index].dims->size == 4 &&
         IsValid(GridOf(context.tensors[index]));
}

bool FindActivationLevels(int activation, const Int8Grid& grid, int32_t* low, int32_t* high) {
  const auto level = [&](float value) {
    const double rounded = grid.zero_point + static_cast<double>(std::round(value / grid.scale));
    return static_cast<int32_t>(std::min(std::max(rounded, -128.0), 127.0));
  };
  *low = activation == kTfLiteActNone ? -128 : level(activation == kTfLiteActReluN1To1 ? -1.0f : 0.0f);
  *high = activation == kTfLiteActRelu6 ? level(6.0f) : activation == kTfLiteActReluN1To1 ? level(1.0f) : 127;
  return activation >= kTfLiteActNone && activation <= kTfLiteActRelu6;
}

}  // namespace litebnn
