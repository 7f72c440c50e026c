// LceBMaxPool2d, max pooling of packed signs; and MAX_POOL_2D, the runtime's own op. The delegate claims the latter if
// it pools outputs of claimed nodes, or if its output becomes signs. Images are then read while they are in the caches.
#include <algorithm>
#include <limits>

#include "tflite/ops/contract.h"
#include "tflite/ops/op_list.h"
#include "tflite/ops/parts.h"
#include "tflite/ops/window.h"

namespace litebnn {
namespace {

// Completes `geometry`, which has the filter and its strides, and sets the output's shape.
bool Slide(const Node& node, const std::vector<int32_t>& shape, int32_t padding, MaxPool2dGeometry* geometry) {
  MaxPool2dGeometry& g = *geometry;
  g.batch = shape[0];
  g.input_height = shape[1];
  g.input_width = shape[2];
  g.channels = shape[3];
  const WindowAxis height = {"height", g.input_height, g.filter_height, g.stride_height, 1};
  const WindowAxis width = {"width", g.input_width, g.filter_width, g.stride_width, 1};
  if (!SlideWindow(node, height, padding, &g.output_height, &g.pad_top) ||
      !SlideWindow(node, width, padding, &g.output_width, &g.pad_left)) {
    return false;
  }
  node.outputs[0]->shape = {g.batch, g.output_height, g.output_width, g.channels};
  return true;
}

class BMaxPool2dOp final : public Op {
 public:
  explicit BMaxPool2dOp(const Isa&) {}

  bool Prepare(const Node& node) override {
    constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
    if (!node.CheckInputType(0, {kTfLiteInt32}) || !node.CheckInputRank(0, 4)) return false;
    if (!node.CheckOutputType({kTfLiteInt32})) return false;

    const FlexbufferMap options(node.options, node.options_size);
    MaxPool2dGeometry& g = geometry_;
    int32_t padding;
    return node.ReadOption(options, contract::kPadding, contract::kPaddingSame, contract::kPaddingValid, &padding) &&
           node.ReadOption(options, contract::kStrideWidth, 1, kMax, &g.stride_width) &&
           node.ReadOption(options, contract::kStrideHeight, 1, kMax, &g.stride_height) &&
           node.ReadOption(options, contract::kFilterWidth, 1, kMax, &g.filter_width) &&
           node.ReadOption(options, contract::kFilterHeight, 1, kMax, &g.filter_height) &&
           Slide(node, node.Input(0)->shape, padding, &g);
  }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*, size_t) const override {
    BMaxPool2d(pool, geometry_, static_cast<const uint32_t*>(inputs[0]), static_cast<uint32_t*>(outputs[0]));
  }

 private:
  MaxPool2dGeometry geometry_ = {};
};

// Inputs: the parts of an image; in a chain also the multiplier and the addend, both optional.
template <bool kIsChain, bool kRectifies>
class MaxPool2dOp final : public Op {
 public:
  explicit MaxPool2dOp(const Isa& isa) : isa_(isa) {}

  bool Prepare(const Node& node) override {
    // The type was checked when the node was claimed; the shape may have changed since.
    const size_t part_count = node.inputs.size() - (kIsChain ? 2 : 0);
    if (!node.CheckInputRank(0, 4) || !parts_.ReadWithConstants(node, part_count)) return false;
    const auto& params = *static_cast<const TfLitePoolParams*>(node.builtin_data);
    floor_ = params.activation == kTfLiteActRelu ? 0.0f : -std::numeric_limits<float>::infinity();
    geometry_.stride_height = params.stride_height;
    geometry_.stride_width = params.stride_width;
    geometry_.filter_height = params.filter_height;
    geometry_.filter_width = params.filter_width;
    const bool same = params.padding == kTfLitePaddingSame;
    return Slide(node, parts_.shape, same ? contract::kPaddingSame : contract::kPaddingValid, &geometry_);
  }

  size_t PartCount() const override { return parts_.channels.size(); }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*, size_t part) const override {
    const int64_t first = parts_.FirstChannel(part);
    const auto constants = [&](size_t i) {
      const auto* values = static_cast<const float*>(kIsChain ? inputs[PartCount() + i] : nullptr);
      return values == nullptr ? nullptr : values + first;
    };
    MaxPool2dGeometry geometry = geometry_;
    geometry.channels = parts_.channels[part];
    MaxPool2d(isa_, pool, geometry,
              {static_cast<const float*>(inputs[part]), constants(0), floor_, constants(1), kRectifies,
               static_cast<float*>(outputs[0]) + first, geometry_.channels});
  }

 private:
  const Isa& isa_;
  Parts parts_;
  MaxPool2dGeometry geometry_ = {};  // for all parts together
  float floor_ = 0.0f;
};

// True if the tensors are images, the activation is none or RELU, and the options are valid. The runtime rejects
// invalid ones.
bool Computes(const TfLiteContext& context, const TfLiteNode& node) {
  if (!AreComputedImages(context, node, 1)) return false;
  const auto& params = *static_cast<const TfLitePoolParams*>(node.builtin_data);
  return (params.activation == kTfLiteActNone || params.activation == kTfLiteActRelu) &&
         (params.padding == kTfLitePaddingSame || params.padding == kTfLitePaddingValid) &&
         std::min({params.stride_height, params.stride_width, params.filter_height, params.filter_width}) > 0;
}

}  // namespace

const OpType kBMaxPool2dOpType = {contract::kBMaxPool2d, 1, 1, {"input"}, CreateOp<BMaxPool2dOp>};
const OpType kMaxPool2dOpType = {
    "MAX_POOL_2D",           1,        1,       {"input"},        CreateOp<MaxPool2dOp<false, false>>,
    kTfLiteBuiltinMaxPool2d, Computes, nullptr, SignFeed::kBegins};
const OpType kAffineMaxPool2dOpType = {
    "MAX_POOL_2D with MUL and ADD", 3, kMaxParts + 2, {"input"}, CreateOp<MaxPool2dOp<true, false>>};
const OpType kRectifiedMaxPool2dOpType = {
    "MAX_POOL_2D with MUL, ADD and RELU", 3, kMaxParts + 2, {"input"}, CreateOp<MaxPool2dOp<true, true>>};

}  // namespace litebnn
