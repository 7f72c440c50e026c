// The file has five pools. LceBMaxPool2d is the max pooling of packed signs. A float MAX_POOL_2D is claimed if its
// output becomes signs, or if claimed nodes write its input, which is then still in the caches. An int8 MAX_POOL_2D or
// AVERAGE_POOL_2D is claimed if claimed nodes write its input, because the runtime's own loops are slow. A float
// AVERAGE_POOL_2D is claimed if it averages a batch norm of which signs are packed, and if its windows do not overlap.
// One pass then computes all of them.
#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "tflite/ops/channel_slices.h"
#include "tflite/ops/contract.h"
#include "tflite/ops/op_list.h"
#include "tflite/ops/window.h"

namespace litebnn {
namespace {

// For windows with fewer taps than this number, float arithmetic gives the exact average. Larger windows of int8 values
// are left to the runtime.
constexpr int64_t kMostTaps = 1 << 17;

// Computes the members of `geometry` that depend on the input, from the filter and its strides. Sets the output's
// shape.
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
  node.outputs.back()->shape = {g.batch, g.output_height, g.output_width, g.channels};
  return true;
}

// `options` are a TfLitePoolParams or a BMaxPool2dOptions.
template <typename Options>
void SetFilter(const Options& options, MaxPool2dGeometry* geometry) {
  geometry->stride_height = options.stride_height;
  geometry->stride_width = options.stride_width;
  geometry->filter_height = options.filter_height;
  geometry->filter_width = options.filter_width;
}

class BMaxPool2dOp final : public Op {
 public:
  explicit BMaxPool2dOp(const Isa&) {}

  bool Prepare(const Node& node) override {
    if (!node.CheckInputType(0, {kTfLiteInt32}) || !node.CheckInputRank(0, 4)) return false;
    if (!node.CheckOutputType({kTfLiteInt32})) return false;

    BMaxPool2dOptions options;
    if (!ReadOptions(node, &options)) return false;
    SetFilter(options, &geometry_);
    return Slide(node, node.Input(0)->shape, options.padding, &geometry_);
  }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*, size_t) const override {
    BMaxPool2d(pool, geometry_, static_cast<const uint32_t*>(inputs[0]), static_cast<uint32_t*>(outputs[0]));
  }

 private:
  MaxPool2dGeometry geometry_ = {};
};

// A max pool of floats. The op's inputs are the slices of an image, which a CONCATENATION would join. If it is fused
// with a batch norm, multiplier and addend follow, both optional.
template <bool kIsChain, bool kRectifies>
class MaxPool2dOp final : public Op {
 public:
  explicit MaxPool2dOp(const Isa& isa) : isa_(isa) {}

  bool Prepare(const Node& node) override {
    // The type was checked when the node was claimed. The shape may have changed since then.
    const size_t slice_count = node.inputs.size() - (kIsChain ? 2 : 0);
    if (!node.CheckInputRank(0, 4) || !slices_.ReadWithConstants(node, slice_count)) return false;
    const auto& params = *static_cast<const TfLitePoolParams*>(node.builtin_data);
    floor_ = params.activation == kTfLiteActRelu ? 0.0f : -std::numeric_limits<float>::infinity();
    SetFilter(params, &geometry_);
    const bool same = params.padding == kTfLitePaddingSame;
    return Slide(node, slices_.shape, same ? contract::kPaddingSame : contract::kPaddingValid, &geometry_);
  }

  size_t SliceCount() const override { return slices_.channels.size(); }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*, size_t slice) const override {
    const int64_t first = slices_.FirstChannel(slice);
    const auto constants = [&](size_t i) {
      const auto* values = static_cast<const float*>(kIsChain ? inputs[SliceCount() + i] : nullptr);
      return values == nullptr ? nullptr : values + first;
    };
    MaxPool2dGeometry geometry = geometry_;
    geometry.channels = slices_.channels[slice];
    MaxPool2d(isa_, pool, geometry,
              {static_cast<const float*>(inputs[slice]), constants(0), floor_, constants(1), kRectifies,
               static_cast<float*>(outputs[0]) + first, geometry_.channels});
  }

 private:
  const Isa& isa_;
  ChannelSlices slices_;
  MaxPool2dGeometry geometry_ = {};  // for all slices together
  float floor_ = 0.0f;
};

// Computes the runtime's AVERAGE_POOL_2D or MAX_POOL_2D of int8 images.
template <bool kAverages>
class Int8Pool2dOp final : public Op {
 public:
  explicit Int8Pool2dOp(const Isa& isa) : isa_(isa) {}

  bool Prepare(const Node& node) override {
    if (!node.CheckInputRank(0, 4)) return false;
    const auto& params = *static_cast<const TfLitePoolParams*>(node.builtin_data);
    const TfLiteQuantizationParams& grid = node.outputs[0]->quantization;
    int32_t low, high;
    if (!FindActivationLevels(params.activation, {grid.scale, grid.zero_point}, &low, &high)) {
      return node.Error("expected the activation that was claimed, found another");
    }
    low_ = static_cast<int8_t>(low);
    high_ = static_cast<int8_t>(high);
    SetFilter(params, &geometry_);
    const bool same = params.padding == kTfLitePaddingSame;
    return Slide(node, node.Input(0)->shape, same ? contract::kPaddingSame : contract::kPaddingValid, &geometry_);
  }

  size_t SliceCount() const override { return 1; }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*, size_t) const override {
    const auto* const input = static_cast<const int8_t*>(inputs[0]);
    auto* const output = static_cast<int8_t*>(outputs[0]);
    kAverages ? AveragePool2d(isa_, pool, geometry_, input, low_, high_, output)
              : MaxPool2d(isa_, pool, geometry_, input, low_, high_, output);
  }

 private:
  const Isa& isa_;
  MaxPool2dGeometry geometry_ = {};
  int8_t low_ = 0, high_ = 0;
};

// An average pool of floats, after an optional batch norm. If there are two outputs, the first one is the packed signs
// of the pool's input.
class FloatAverageOp final : public Op {
 public:
  explicit FloatAverageOp(const Isa& isa) : isa_(isa) {}

  bool Prepare(const Node& node) override {
    if (!node.CheckInputType(0, {kTfLiteFloat32}) || !node.CheckInputRank(0, 4)) return false;
    packs_ = node.outputs.size() > 1;
    if (packs_ && !node.CheckOutputType({kTfLiteInt32})) return false;
    const TfLiteType type = node.outputs.back()->type;
    if (type != kTfLiteFloat32) return node.Error("average: type: expected FLOAT32, found %s", TypeName(type));
    const std::vector<int32_t>& shape = node.Input(0)->shape;
    for (size_t constant = 0; constant < neutral_.size(); ++constant) {
      if (node.Input(1 + constant) != nullptr && !CheckChannelValues(node, 1 + constant, shape[3])) return false;
    }
    node.outputs[0]->shape = shape;
    node.outputs[0]->shape[3] = PackedWords(shape[3]);
    const auto& params = *static_cast<const TfLitePoolParams*>(node.builtin_data);
    SetFilter(params, &geometry_);
    const bool same = params.padding == kTfLitePaddingSame;
    if (!Slide(node, shape, same ? contract::kPaddingSame : contract::kPaddingValid, &geometry_)) return false;
    // These vectors are allocated only after all checks.
    for (size_t constant = 0; constant < neutral_.size(); ++constant) {
      if (node.Input(1 + constant) != nullptr) continue;
      neutral_[constant].assign(static_cast<size_t>(shape[3]), constant == 0 ? 1.0f : 0.0f);
    }
    return true;
  }

  size_t WorkspaceBytes(int) const override {
    return static_cast<size_t>(int64_t{geometry_.batch} * geometry_.input_height * geometry_.channels) * sizeof(float);
  }
  size_t OwnedBytes() const override { return (neutral_[0].size() + neutral_[1].size()) * sizeof(float); }
  size_t SliceCount() const override { return 1; }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void* workspace, size_t) const override {
    const auto constants = [&](size_t constant) {
      return neutral_[constant].empty() ? static_cast<const float*>(inputs[1 + constant]) : neutral_[constant].data();
    };
    AveragePool2d(isa_, pool, geometry_,
                  {static_cast<const float*>(inputs[0]), constants(0), constants(1),
                   packs_ ? static_cast<uint32_t*>(outputs[0]) : nullptr, static_cast<float*>(outputs[packs_ ? 1 : 0]),
                   static_cast<float*>(workspace)});
  }

 private:
  const Isa& isa_;
  MaxPool2dGeometry geometry_ = {};
  bool packs_ = false;
  std::array<std::vector<float>, 2> neutral_;  // replaces a multiplier or addend that is left out
};

// True if the options are valid; the runtime rejects nodes with invalid options.
bool HasWindow(const TfLitePoolParams& params) {
  return (params.padding == kTfLitePaddingSame || params.padding == kTfLitePaddingValid) &&
         std::min({params.stride_height, params.stride_width, params.filter_height, params.filter_width}) > 0;
}

// True if the tensors are int8 images with the same scale and zero point.
bool PoolsInt8(const TfLiteContext& context, const TfLiteNode& node) {
  const TfLiteIntArray &inputs = *node.inputs, &outputs = *node.outputs;
  if (inputs.size != 1 || outputs.size != 1) return false;
  if (!IsComputedInt8Image(context, inputs.data[0]) || !IsComputedInt8Image(context, outputs.data[0])) return false;
  const Int8Grid own = GridOf(context.tensors[inputs.data[0]]), pooled = GridOf(context.tensors[outputs.data[0]]);
  const auto& params = *static_cast<const TfLitePoolParams*>(node.builtin_data);
  int32_t low, high;
  return own.scale == pooled.scale && own.zero_point == pooled.zero_point && HasWindow(params) &&
         int64_t{params.filter_height} * params.filter_width < kMostTaps &&
         FindActivationLevels(params.activation, pooled, &low, &high);
}

// True if the tensors are images, the activation is none or RELU, and the options are valid. The runtime rejects nodes
// with invalid options.
bool PoolsFloats(const TfLiteContext& context, const TfLiteNode& node) {
  if (!AreComputedImages(context, node, 1)) return false;
  const auto& params = *static_cast<const TfLitePoolParams*>(node.builtin_data);
  return (params.activation == kTfLiteActNone || params.activation == kTfLiteActRelu) && HasWindow(params);
}

// XNNPACK is faster where windows overlap, because it computes the batch norm of each pixel only once.
bool AveragesFloats(const TfLiteContext& context, const TfLiteNode& node) {
  if (!PoolsFloats(context, node)) return false;
  const auto& params = *static_cast<const TfLitePoolParams*>(node.builtin_data);
  const bool overlap = params.stride_height < params.filter_height || params.stride_width < params.filter_width;
  return params.activation == kTfLiteActNone && !overlap;
}

}  // namespace

const OpType kBMaxPool2dOpType = {contract::kBMaxPool2d, 1, 1, {"input"}, CreateOp<BMaxPool2dOp>};
const OpType kMaxPool2dOpType = {
    "MAX_POOL_2D",           1,           1,       {"input"},        CreateOp<MaxPool2dOp<false, false>>,
    kTfLiteBuiltinMaxPool2d, PoolsFloats, nullptr, SignFeed::kBegins};
const OpType kAveragePool2dOpType = {
    .name = "AVERAGE_POOL_2D",
    .min_inputs = 1,
    .max_inputs = 1,
    .input_names = {"input"},
    .create = CreateOp<Int8Pool2dOp<true>>,
    .builtin_code = kTfLiteBuiltinAveragePool2d,
    .computes = PoolsInt8,
};
const OpType kInt8MaxPool2dOpType = {
    .name = "MAX_POOL_2D",
    .min_inputs = 1,
    .max_inputs = 1,
    .input_names = {"input"},
    .create = CreateOp<Int8Pool2dOp<false>>,
    .builtin_code = kTfLiteBuiltinMaxPool2d,
    .computes = PoolsInt8,
};
const OpType kAffineMaxPool2dOpType = {
    "MAX_POOL_2D with MUL and ADD", 3, kMaxSlices + 2, {"input"}, CreateOp<MaxPool2dOp<true, false>>};
const OpType kRectifiedMaxPool2dOpType = {
    "MAX_POOL_2D with MUL, ADD and RELU", 3, kMaxSlices + 2, {"input"}, CreateOp<MaxPool2dOp<true, true>>};
const OpType kFloatAverageOpType = {
    .name = "AVERAGE_POOL_2D",
    .min_inputs = 1,
    .max_inputs = 1,
    .input_names = {"input"},
    .create = CreateOp<FloatAverageOp>,
    .builtin_code = kTfLiteBuiltinAveragePool2d,
    .computes = AveragesFloats,
    .follows = FollowsNothing,
};
const OpType kAverageQuantizeOpType = {
    "LceQuantize with AVERAGE_POOL_2D, MUL and ADD", 1, 3, {"input", "multiplier", "addend"}, CreateOp<FloatAverageOp>};

}  // namespace litebnn
