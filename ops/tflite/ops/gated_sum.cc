#include "tflite/ops/gated_sum.h"

#include <algorithm>
#include <array>

#include "tflite/ops/op_list.h"

namespace litebnn {
namespace {

// The four sizes of a tensor; leading dimensions that it lacks have the size 1.
using Sizes = std::array<int32_t, 4>;

Sizes Pad(const std::vector<int32_t>& shape) {
  Sizes sizes = {1, 1, 1, 1};
  std::copy(shape.begin(), shape.end(), sizes.end() - static_cast<ptrdiff_t>(shape.size()));
  return sizes;
}

// True if a tensor of these sizes can be broadcast along images, rows and columns to a tensor of the sizes `whole`.
bool BroadcastsTo(const Sizes& sizes, const Sizes& whole) {
  const auto fits = [](int32_t size, int32_t whole_size) { return size == 1 || size == whole_size; };
  return std::equal(sizes.begin(), sizes.end() - 1, whole.begin(), fits) && sizes[3] == whole[3];
}

GateOperand StridesOf(const Sizes& sizes, const Sizes& whole) {
  const int64_t channels = sizes[3], row = sizes[2] * channels;
  const auto stride = [](int32_t size, int64_t floats) { return size == 1 ? 0 : floats; };
  const int64_t row_stride = stride(sizes[1], row);
  // If each row has only one pixel, the distance between pixels is the distance between rows.
  return {nullptr, stride(sizes[0], sizes[1] * row), row_stride,
          whole[2] == 1 ? row_stride : stride(sizes[2], channels)};
}

}  // namespace

bool GatedSum::Resize(const Node& node) {
  has_gate_ = node.Input(roles_.gate) != nullptr;
  has_alpha_ = node.Input(roles_.alpha) != nullptr;
  if (gates() || !roles_.follows_convolution) {
    if (!ReadOperands(node)) return false;
    if (has_alpha_ && !CheckChannelValues(node, roles_.alpha, images_.channels)) return false;
    if (!has_alpha_ && images_.channels > kMaxOnes) {
      return node.OutputError("shape: expected at most %d channels, found %d", kMaxOnes, images_.channels);
    }
    if (!has_gate_ || !has_alpha_) ones_.assign(static_cast<size_t>(images_.channels), 1.0f);
  }
  return sum_.Resize(node, roles_.addend);
}

// Computes the shape of the product and the strides of both factors.
bool GatedSum::ReadOperands(const Node& node) {
  std::vector<int32_t>& shape = node.outputs[0]->shape;
  const Sizes image = Pad(shape);
  Sizes gate = image;
  if (has_gate_) {
    const std::vector<int32_t>& gate_shape = node.Input(roles_.gate)->shape;
    if (!node.CheckInputType(roles_.gate, {kTfLiteFloat32})) return false;
    if (gate_shape.size() > gate.size()) {
      return node.InputError(roles_.gate, "shape: expected at most 4 dimensions, found %s",
                             ShapeText(gate_shape).c_str());
    }
    gate = Pad(gate_shape);
  }
  Sizes whole;
  for (size_t i = 0; i < whole.size(); ++i) whole[i] = std::max(image[i], gate[i]);
  if (!BroadcastsTo(image, whole) || !BroadcastsTo(gate, whole)) {
    return node.InputError(roles_.gate, "shape: expected one that goes with %s, found %s", ShapeText(shape).c_str(),
                           ShapeText(node.Input(roles_.gate)->shape).c_str());
  }
  has_full_image_ = image == whole;
  images_.images = whole[0];
  images_.rows = whole[1];
  images_.columns = whole[2];
  images_.channels = whole[3];
  images_.input = StridesOf(image, whole);
  images_.gate = has_gate_ ? StridesOf(gate, whole) : GateOperand{};
  images_.rectify_product = roles_.rectifies_product;
  shape.assign(whole.begin(), whole.end());
  return true;
}

bool GatedSum::is_epilogue() const {
  if (!gates()) return sum_.computed_bytes() == 0;
  const bool is_gate_of_images = images_.gate.row_stride == 0 && images_.gate.pixel_stride == 0;
  return has_full_image_ && is_gate_of_images && !images_.rectify_product && overwrites_addend() && !sum_.rectifies();
}

Bconv2dEpilogue GatedSum::EpilogueOf(const void* const* inputs) const {
  const float* const addend = AddendOf(inputs);
  if (!gates()) return {nullptr, 0, nullptr, addend, sum_.rectifies()};
  return {GateOf(inputs), images_.gate.image_stride, SlopeOf(inputs), addend, false};
}

void GatedSum::Run(const Isa& isa, ThreadPool& pool, const float* image, const void* const* inputs, float* output,
                   void* workspace) const {
  const float* const addend = AddendOf(inputs);
  const bool adds_afterwards = sum_.computed_bytes() > 0;
  if (adds_afterwards && !gates()) return sum_.Run(pool, image, addend, output);
  GatedImages images = images_;
  images.input.values = image;
  images.gate.values = GateOf(inputs);
  images.slope = SlopeOf(inputs);
  images.addend = adds_afterwards ? nullptr : addend;
  images.rectify_sum = sum_.rectifies();
  images.output = adds_afterwards ? static_cast<float*>(workspace) : output;
  GateImages(isa, pool, images);
  if (adds_afterwards) sum_.Run(pool, images.output, addend, output);
}

}  // namespace litebnn
