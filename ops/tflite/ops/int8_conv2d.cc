// The op computes int8 CONV_2D nodes with few input channels, which are the first layers of networks, faster than
// runtimes. A runtime pads each tap to four or eight channels, which wastes half of its multiplications. A runtime also
// computes each group of channels separately, with tiles for more channels than a group has.
#include <algorithm>
#include <vector>

#include "tflite/ops/contract.h"
#include "tflite/ops/op_list.h"
#include "tflite/ops/window.h"

namespace litebnn {
namespace {

// The positions of the node's inputs.
enum : int { kConvInput, kConvFilter, kConvBias };

// The largest number of input channels of a convolution without groups. For convolutions with groups, the least and the
// largest number of input channels of each group follow. Groups of one channel are a depthwise convolution, for which
// runtimes have other kernels.
constexpr int32_t kMostChannels = 4, kLeastGroupChannels = 4, kMostGroupChannels = 8;
// The largest number of outputs and of weights, far above those of a network's first layer. All weights are read when a
// node is claimed. In a malicious model, many nodes could share one large filter, and reading it for each node would
// take too long.
constexpr int32_t kMostOutputs = 1 << 10;
constexpr double kMostWeights = 1 << 16;

// The indices of the node's tensors; `bias` is kOptionalTensor if it is left out.
struct Tensors {
  int input, filter, bias, output;
};

// The scales of the filter, one for each channel or one for all; null if the filter has another number of scales.
const TfLiteFloatArray* ScalesOf(const TfLiteTensor& filter) {
  if (filter.quantization.type != kTfLiteAffineQuantization || filter.quantization.params == nullptr) return nullptr;
  const auto& affine = *static_cast<const TfLiteAffineQuantization*>(filter.quantization.params);
  const TfLiteFloatArray* const scales = affine.scale;
  const TfLiteIntArray* const zero_points = affine.zero_point;
  if (scales == nullptr || zero_points == nullptr || zero_points->size < 1) return nullptr;
  if (std::any_of(zero_points->data, zero_points->data + zero_points->size, [](int zero) { return zero != 0; })) {
    return nullptr;
  }
  const bool by_channel = scales->size == filter.dims->data[0] && affine.quantized_dimension == 0;
  return scales->size == 1 || by_channel ? scales : nullptr;
}

// True if the tensor is a constant whose data has at least `bytes` bytes, aligned to `value_bytes`.
bool HasConstants(const TfLiteTensor& tensor, double bytes, size_t value_bytes) {
  return IsConstant(tensor) && tensor.data != nullptr && static_cast<double>(tensor.bytes) >= bytes &&
         reinterpret_cast<uintptr_t>(tensor.data) % value_bytes == 0;
}

// Reads the properties that do not change when the input is resized. `spec` points to `scales`, which must live as long
// as `spec` is used. Returns false if this op does not support the node.
bool ReadInt8Conv(const TfLiteContext& context, const Tensors& tensors, const TfLiteConvParams& params,
                  std::vector<double>* scales, Int8Conv2dSpec* spec) {
  if (!IsComputedInt8Image(context, tensors.input) || !IsComputedInt8Image(context, tensors.output)) return false;
  const TfLiteTensor &input = context.tensors[tensors.input], &output = context.tensors[tensors.output];
  const TfLiteTensor* const filter = FindTensor(context, tensors.filter);
  if (filter == nullptr || filter->type != kTfLiteInt8 || filter->dims->size != 4) return false;
  if (params.padding != kTfLitePaddingSame && params.padding != kTfLitePaddingValid) return false;
  if (params.dilation_height_factor != 1 || params.dilation_width_factor != 1) return false;
  const int* const shape = filter->dims->data;
  const int channels = input.dims->data[3];
  if (*std::min_element(shape, shape + 4) < 1 || channels < 1 || channels % shape[3] != 0) return false;
  const int groups = channels / shape[3];
  if (shape[3] > (groups == 1 ? kMostChannels : kMostGroupChannels) || shape[0] % groups != 0) return false;
  if (groups > 1 && shape[3] < kLeastGroupChannels) return false;
  if (shape[0] > kMostOutputs || CountKnownValues(filter->dims) > kMostWeights) return false;
  if (std::min(params.stride_height, params.stride_width) < 1) return false;
  if (!HasConstants(*filter, CountKnownValues(filter->dims), 1)) return false;
  const TfLiteFloatArray* const filter_scales = ScalesOf(*filter);
  if (filter_scales == nullptr) return false;
  *spec = {};
  if (tensors.bias != kOptionalTensor) {
    const TfLiteTensor* const bias = FindTensor(context, tensors.bias);
    if (bias == nullptr || bias->type != kTfLiteInt32 || CountKnownValues(bias->dims) != shape[0]) return false;
    if (!HasConstants(*bias, 4.0 * shape[0], sizeof(int32_t))) return false;
    spec->bias = static_cast<const int32_t*>(bias->data);
  }
  for (int channel = 0; channel < shape[0]; ++channel) {
    const float scale = filter_scales->data[filter_scales->size == 1 ? 0 : channel];
    // The scales are multiplied in the reference kernel's order, because the product is rounded.
    scales->push_back(static_cast<double>(input.params.scale) * static_cast<double>(scale) /
                      static_cast<double>(output.params.scale));
  }
  spec->channels_out = shape[0];
  spec->filter_height = shape[1];
  spec->filter_width = shape[2];
  spec->channels_in = channels;
  spec->groups = groups;
  spec->stride_height = params.stride_height;
  spec->stride_width = params.stride_width;
  spec->input_zero_point = input.params.zero_point;
  spec->output_zero_point = output.params.zero_point;
  spec->filter = static_cast<const int8_t*>(filter->data);
  spec->scales = scales->data();
  return FindActivationLevels(params.activation, GridOf(output), &spec->output_min, &spec->output_max) &&
         Int8Conv2d::Supports(*spec);
}

class Int8Conv2dOp final : public Op {
 public:
  explicit Int8Conv2dOp(const Isa& isa) : isa_(isa) {}

  bool Prepare(const Node& node) override {
    const auto& params = *static_cast<const TfLiteConvParams*>(node.builtin_data);
    if (convolution_ == nullptr && !Create(node, params)) return false;
    // The delegate checked the image's type when it claimed the node. The image's shape may have changed since then.
    if (!node.CheckInputRank(kConvInput, 4)) return false;
    const std::vector<int32_t>& shape = node.Input(kConvInput)->shape;
    if (shape[3] != spec_.channels_in) {
      return node.InputError(kConvInput, "last dimension: expected %d channels, found %d", spec_.channels_in, shape[3]);
    }
    const int32_t padding = params.padding == kTfLitePaddingSame ? contract::kPaddingSame : contract::kPaddingValid;
    Bconv2dGeometry g = {};
    g.batch = shape[0];
    g.input_height = shape[1];
    g.input_width = shape[2];
    const WindowAxis height = {"height", g.input_height, spec_.filter_height, spec_.stride_height, 1};
    const WindowAxis width = {"width", g.input_width, spec_.filter_width, spec_.stride_width, 1};
    if (!SlideWindow(node, height, padding, &g.output_height, &g.pad_top) ||
        !SlideWindow(node, width, padding, &g.output_width, &g.pad_left)) {
      return false;
    }
    node.outputs[0]->shape = {g.batch, g.output_height, g.output_width, spec_.channels_out};
    if (TensorBytes(*node.outputs[0]) > 0 && convolution_->Resize(g)) return true;
    return node.InputError(kConvInput, "shape: expected one that there is memory for with its padding, found %s",
                           ShapeText(shape).c_str());
  }

  size_t WorkspaceBytes(int) const override { return convolution_->WorkspaceBytes(); }
  size_t OwnedBytes() const override { return convolution_->OwnedBytes(); }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void* workspace, size_t) const override {
    convolution_->Run(pool, static_cast<const int8_t*>(inputs[kConvInput]), static_cast<int8_t*>(outputs[0]),
                      workspace);
  }

 private:
  bool Create(const Node& node, const TfLiteConvParams& params) {
    std::vector<double> scales;
    const Tensor* const bias = node.Input(kConvBias);
    const Tensors tensors = {node.Input(kConvInput)->index, node.Input(kConvFilter)->index,
                             bias == nullptr ? kOptionalTensor : bias->index, node.outputs[0]->index};
    if (!ReadInt8Conv(*node.context, tensors, params, &scales, &spec_)) {
      return node.Error("expected the tensors and options that were claimed, found others");
    }
    convolution_ = Int8Conv2d::Create(isa_, spec_);
    return convolution_ != nullptr || node.Error("out of memory for the weights");
  }

  const Isa& isa_;
  Int8Conv2dSpec spec_ = {};
  std::unique_ptr<Int8Conv2d> convolution_;
};

bool IsInt8Conv(const TfLiteContext& context, const TfLiteNode& node) {
  const TfLiteIntArray &inputs = *node.inputs, &outputs = *node.outputs;
  if (inputs.size < 2 || inputs.size > 3 || outputs.size != 1) return false;
  Int8Conv2dSpec spec;
  std::vector<double> scales;
  const Tensors tensors = {inputs.data[kConvInput], inputs.data[kConvFilter],
                           inputs.size == 3 ? inputs.data[kConvBias] : kOptionalTensor, outputs.data[0]};
  return ReadInt8Conv(context, tensors, *static_cast<const TfLiteConvParams*>(node.builtin_data), &scales, &spec);
}

}  // namespace

const OpType kInt8Conv2dOpType = {
    .name = "CONV_2D",
    .min_inputs = 2,
    .max_inputs = 3,
    .input_names = {"input", "filter", "bias"},
    .create = CreateOp<Int8Conv2dOp>,
    .builtin_code = kTfLiteBuiltinConv2d,
    .computes = IsInt8Conv,
    .stands_alone = true,
};

}  // namespace litebnn
