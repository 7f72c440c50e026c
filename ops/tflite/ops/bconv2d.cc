// LceBconv2d: binary 2-D convolution of packed signs, to float32, int8 or packed signs.
#include <algorithm>
#include <limits>

#include "kernels/platform/aligned_buffer.h"
#include "tflite/ops/gated_sum.h"
#include "tflite/ops/int8_sum.h"
#include "tflite/ops/op_list.h"
#include "tflite/ops/window.h"

namespace litebnn {
namespace {

constexpr int32_t kMax = std::numeric_limits<int32_t>::max();

// The positions of the convolution's inputs in the node. The inputs of fused ops come after them.
enum : size_t { kInput, kFilter, kMultiplier, kBias, kThreshold, kFused };

static_assert(static_cast<int32_t>(Activation::kNone) == contract::kActivationNone);
static_assert(static_cast<int32_t>(Activation::kRelu) == contract::kActivationRelu);
static_assert(static_cast<int32_t>(Activation::kReluN1To1) == contract::kActivationReluN1To1);
static_assert(static_cast<int32_t>(Activation::kRelu6) == contract::kActivationRelu6);

class Bconv2dOp final : public Op {
 public:
  // Makes the op for a convolution, including the ops that are fused into it. If `adds_int8` is true, the last input is
  // an int8 addend.
  Bconv2dOp(const Isa& isa, const GatedSum::Roles& roles, bool adds_int8)
      : isa_(isa), roles_(roles), adds_int8_(adds_int8), sum_(roles) {}

  bool Prepare(const Node& node) override {
    if (convolution_ == nullptr && !ReadSpec(node)) return false;
    Bconv2dGeometry geometry = {};
    if (!Slide(node, &geometry)) return false;
    if (convolution_ == nullptr && !Create(node, geometry)) return false;
    return Resize(node, geometry);
  }

  size_t WorkspaceBytes(int num_threads) const override {
    return convolved_bytes_ + std::max(convolution_->WorkspaceBytes(num_threads), sum_.WorkspaceBytes());
  }
  std::optional<size_t> OverwritableInput() const override {
    if (adds_int8_) return int8_sum_.is_alike() ? std::optional<size_t>(kFused) : std::nullopt;
    return sum_.overwrites_addend() ? std::optional<size_t>(roles_.addend) : std::nullopt;
  }
  size_t OwnedBytes() const override { return convolution_->OwnedBytes() + sum_.OwnedBytes(); }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void* workspace, size_t) const override {
    const auto* input = static_cast<const uint32_t*>(inputs[kInput]);
    if (convolved_bytes_ == 0) {
      const Bconv2dEpilogue epilogue = adds_int8_ ? int8_sum_.EpilogueOf(inputs[kFused]) : sum_.EpilogueOf(inputs);
      convolution_->Run(pool, input, epilogue, outputs[0], workspace);
      return;
    }
    void* const remaining = static_cast<std::byte*>(workspace) + convolved_bytes_;
    convolution_->Run(pool, input, {}, workspace, remaining);
    if (adds_int8_) {
      int8_sum_.Run(pool, static_cast<const int8_t*>(workspace), inputs[kFused], static_cast<int8_t*>(outputs[0]));
    } else {
      sum_.Run(isa_, pool, static_cast<const float*>(workspace), inputs, static_cast<float*>(outputs[0]), remaining);
    }
  }

 private:
  bool ReadSpec(const Node& node) {
    spec_ = {};
    return ReadNodeOptions(node, &spec_) && ReadFilter(node, &spec_) && ReadOutput(node, &spec_);
  }

  bool Create(const Node& node, const Bconv2dGeometry& geometry) {
    // Runtimes set unknown sizes to 1. If the image has only one pixel, its size may be unknown, so the number of
    // output pixels is set to 0, which means unknown.
    const bool is_known = int64_t{geometry.input_height} * geometry.input_width > 1;
    spec_.output_pixels = is_known ? int64_t{geometry.output_height} * geometry.output_width : 0;
    convolution_ = Bconv2d::Create(isa_, spec_, static_cast<const uint32_t*>(node.Input(kFilter)->constant));
    return convolution_ != nullptr || node.Error("out of memory for the weights");
  }

  bool ReadNodeOptions(const Node& node, Bconv2dSpec* spec) {
    if (!ReadOptions(node, &options_)) return false;
    spec->channels_in = options_.channels_in;
    spec->dilation_height_factor = options_.dilation_height_factor;
    spec->dilation_width_factor = options_.dilation_width_factor;
    spec->stride_height = options_.stride_height;
    spec->stride_width = options_.stride_width;
    spec->activation = static_cast<Activation>(options_.fused_activation_function);
    const bool pads = options_.padding == contract::kPaddingSame || options_.has_explicit_padding;
    spec->zero_padding = pads && options_.pad_values == contract::kPadValuesZero;
    return true;
  }

  bool ReadFilter(const Node& node, Bconv2dSpec* spec) {
    if (node.Input(kFilter) == nullptr) return node.Error("filter: expected a tensor, found none");
    if (!node.CheckInputType(kFilter, {kTfLiteInt32}) || !node.CheckInputRank(kFilter, 4)) return false;
    const Tensor& filter = *node.Input(kFilter);
    if (filter.constant == nullptr) return node.InputError(kFilter, "values: expected constants, found none");

    spec->channels_out = filter.shape[0];
    spec->filter_height = filter.shape[1];
    spec->filter_width = filter.shape[2];
    const int32_t words = filter.shape[3];
    if (words == PackedWords(spec->channels_in)) {
      spec->groups = 1;
    } else if (int64_t{words} * kBitsPerWord <= spec->channels_in && spec->channels_in % (words * kBitsPerWord) == 0) {
      spec->groups = spec->channels_in / (words * kBitsPerWord);
    } else {
      return node.InputError(kFilter, "last dimension: expected %d words, or a divisor for groups, found %d",
                             PackedWords(spec->channels_in), words);
    }
    if (spec->channels_out % spec->groups != 0) {
      return node.InputError(kFilter, "first dimension: expected a multiple of %d groups, found %d", spec->groups,
                             spec->channels_out);
    }
    // A filter has at most INT32_MAX words. The filter's number of taps can therefore not overflow an int32_t, but its
    // number of bits can.
    const int64_t taps = int64_t{spec->filter_height} * spec->filter_width;
    if (taps > kMax / (spec->channels_in / spec->groups)) {
      return node.InputError(kFilter, "shape: expected at most 2147483647 bits for an output channel, found %s",
                             ShapeText(filter.shape).c_str());
    }
    return true;
  }

  // Reads the constants per channel at `position`; null if they are left out.
  static bool ReadPerChannel(const Node& node, size_t position, TfLiteType type, int32_t channels,
                             const void** values) {
    *values = nullptr;
    if (node.Input(position) == nullptr) return true;
    if (!node.CheckInputType(position, {type}) || !node.CheckInputRank(position, 1)) return false;
    const Tensor& tensor = *node.Input(position);
    if (tensor.shape[0] != channels) {
      return node.InputError(position, "length: expected %d, one for each output channel, found %d", channels,
                             tensor.shape[0]);
    }
    if (tensor.constant == nullptr) return node.InputError(position, "values: expected constants, found none");
    *values = tensor.constant;
    return true;
  }

  bool ReadOutput(const Node& node, Bconv2dSpec* spec) {
    if (!node.CheckOutputType({kTfLiteFloat32, kTfLiteInt8, kTfLiteInt32})) return false;
    const void *multiplier, *bias, *threshold;
    if (!ReadPerChannel(node, kMultiplier, kTfLiteFloat32, spec->channels_out, &multiplier) ||
        !ReadPerChannel(node, kBias, kTfLiteFloat32, spec->channels_out, &bias) ||
        !ReadPerChannel(node, kThreshold, kTfLiteInt32, spec->channels_out, &threshold)) {
      return false;
    }
    spec->post_activation_multiplier = static_cast<const float*>(multiplier);
    spec->post_activation_bias = static_cast<const float*>(bias);
    spec->output_threshold = static_cast<const int32_t*>(threshold);

    const Tensor& output = *node.outputs[0];
    switch (output.type) {
      case kTfLiteFloat32:
        spec->output_type = Bconv2dOutputType::kFloat32;
        return true;
      case kTfLiteInt8:
        spec->output_type = Bconv2dOutputType::kInt8;
        spec->output_scale = output.quantization.scale;
        spec->output_zero_point = output.quantization.zero_point;
        if (adds_int8_) {
          // The convolution is fused with an ADD. The sum's first operand has the quantization of the tensor between
          // the two nodes, which the fusion removed.
          const TfLiteQuantizationParams& own = node.context->tensors[node.fused_outputs[0]].params;
          spec->output_scale = own.scale;
          spec->output_zero_point = own.zero_point;
        }
        return node.CheckOutputQuantization();
      default:
        spec->output_type = Bconv2dOutputType::kBitpacked;
        if (threshold == nullptr)
          return node.Error("output_threshold: expected a tensor for packed output, found none");
        if (spec->zero_padding && (spec->channels_in / spec->groups) % 2 != 0) {
          return node.Error(
              "option channels_in: expected an even number for each group with packed output and zero padding, "
              "found %d",
              spec->channels_in / spec->groups);
        }
        return CheckPackedOutputShape(node, spec->channels_out);
    }
  }

  static bool CheckPackedOutputShape(const Node& node, int32_t channels_out) {
    const std::vector<int32_t>& shape = node.outputs[0]->shape;
    const int32_t words = PackedWords(channels_out);
    if (shape.size() == 4 && shape[3] == words) return true;
    return node.OutputError("shape: expected 4 dimensions, the last %d words for %d channels, found %s", words,
                            channels_out, ShapeText(shape).c_str());
  }

  // Computes the geometry from the input's shape, and sets the output's shape.
  bool Slide(const Node& node, Bconv2dGeometry* geometry) const {
    if (!node.CheckInputType(kInput, {kTfLiteInt32}) || !node.CheckInputRank(kInput, 4)) return false;
    const std::vector<int32_t>& shape = node.Input(kInput)->shape;
    if (shape[3] != PackedWords(spec_.channels_in)) {
      return node.InputError(kInput, "last dimension: expected %d words for %d channels, found %d",
                             PackedWords(spec_.channels_in), spec_.channels_in, shape[3]);
    }
    Bconv2dGeometry& g = *geometry;
    g.batch = shape[0];
    g.input_height = shape[1];
    g.input_width = shape[2];
    const WindowAxis height = {
        "height",         g.input_height,     spec_.filter_height, spec_.stride_height, spec_.dilation_height_factor,
        options_.pad_top, options_.pad_bottom};
    const WindowAxis width = {
        "width",           g.input_width,     spec_.filter_width, spec_.stride_width, spec_.dilation_width_factor,
        options_.pad_left, options_.pad_right};
    if (!SlideWindow(node, height, options_.padding, &g.output_height, &g.pad_top) ||
        !SlideWindow(node, width, options_.padding, &g.output_width, &g.pad_left)) {
      return false;
    }
    const bool packed = spec_.output_type == Bconv2dOutputType::kBitpacked;
    node.outputs[0]->shape = {g.batch, g.output_height, g.output_width,
                              packed ? PackedWords(spec_.channels_out) : spec_.channels_out};
    // The output's size is checked before the kernel plans for the shape, because planning for too large an output
    // would cost memory and time.
    if (TensorBytes(*node.outputs[0]) > 0) return true;
    return node.OutputError("shape: expected at most 2147483647 values, found %s",
                            ShapeText(node.outputs[0]->shape).c_str());
  }

  bool Resize(const Node& node, const Bconv2dGeometry& geometry) {
    // The size in bytes of the convolution's result. It may differ from the size of the node's output, because a fused
    // ADD may broadcast the result.
    const size_t bytes = TensorBytes(*node.outputs[0]);
    convolved_bytes_ = 0;
    if (adds_int8_) {
      if (!int8_sum_.Resize(node, {spec_.output_scale, spec_.output_zero_point}, kFused)) return false;
    } else if (!sum_.Resize(node)) {
      return false;
    }
    if (!convolution_->Resize(geometry)) {
      return node.InputError(kInput, "shape: expected one that there is memory for with its padding, found %s",
                             ShapeText(node.Input(kInput)->shape).c_str());
    }
    const bool has_epilogue = adds_int8_ ? int8_sum_.is_epilogue() && convolution_->adds_int8()
                                         : sum_.is_epilogue() && (convolution_->gates() || !sum_.gates());
    return has_epilogue || ReserveImage(node, bytes, &convolved_bytes_);
  }

  const Isa& isa_;
  Bconv2dSpec spec_ = {};
  Bconv2dOptions options_ = {};
  const GatedSum::Roles roles_;
  const bool adds_int8_;
  GatedSum sum_;
  FusedInt8Sum int8_sum_;
  size_t convolved_bytes_ = 0;  // of the convolution's output if the fused op runs after it, otherwise 0
  std::unique_ptr<Bconv2d> convolution_;
};

// The template arguments kGate, kAlpha and kAddend are the positions of the fused ops' operands among the node's
// inputs, or kNoInput.
template <size_t kGate, size_t kAlpha, size_t kAddend, bool kAddsInt8 = false>
std::unique_ptr<Op> CreateBconv2d(const Isa& isa) {
  return std::unique_ptr<Op>(new (std::nothrow) Bconv2dOp(isa, {kGate, kAlpha, kAddend, false, true}, kAddsInt8));
}

}  // namespace

const OpType kBconv2dOpType = {
    contract::kBconv2d,
    2,
    5,
    {"input", "filter", "post_activation_multiplier", "post_activation_bias", "output_threshold"},
    CreateBconv2d<kNoInput, kNoInput, kNoInput>};

const OpType kBconv2dAddOpType = {
    "LceBconv2d with ADD",
    6,
    6,
    {"input", "filter", "post_activation_multiplier", "post_activation_bias", "output_threshold", "addend"},
    CreateBconv2d<kNoInput, kNoInput, kFused>};

const OpType kBconv2dInt8AddOpType = {
    "LceBconv2d with ADD of int8",
    6,
    6,
    {"input", "filter", "post_activation_multiplier", "post_activation_bias", "output_threshold", "addend"},
    CreateBconv2d<kNoInput, kNoInput, kNoInput, true>};

const OpType kGatedBconv2dOpType = {"LceBconv2d with MUL, PRELU and ADD",
                                    8,
                                    8,
                                    {"input", "filter", "post_activation_multiplier", "post_activation_bias",
                                     "output_threshold", "gate", "alpha", "addend"},
                                    CreateBconv2d<kFused, kFused + 1, kFused + 2>};

}  // namespace litebnn
