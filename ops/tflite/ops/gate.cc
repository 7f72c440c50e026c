// MUL of an image by a gate, a value for each of its channels that the network computes; PRELU; and ADD of another
// image: the runtime's own ops, which are computed in one pass where they stand behind each other, as in
// squeeze-and-excite blocks. Most additions are fused into binary convolutions; by itself one runs where a
// convolution's output has another reader, or another node stands between the two.
#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "tflite/ops/broadcast_sum.h"
#include "tflite/ops/op_list.h"

namespace litebnn {
namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();

// More than any network has. Where there are no slopes, whose number the file limits, there is a one for each channel.
constexpr int32_t kMaxOnes = 1 << 20;

// The positions of the inputs behind the first.
struct Roles {
  size_t gate, alpha, addend;
  bool rectifies_product;
};

// A tensor's four dimensions; those left out in front are 1.
using Sizes = std::array<int32_t, 4>;

// `dims` has at most four dimensions.
Sizes Pad(const int32_t* dims, size_t count) {
  Sizes sizes = {1, 1, 1, 1};
  std::copy(dims, dims + count, sizes.end() - count);
  return sizes;
}

// Whether what has these sizes is multiplied with every image, row and pixel of the whole, or with its own.
bool GoesWith(const Sizes& sizes, const Sizes& whole) {
  const auto goes = [](int32_t size, int32_t of_whole) { return size == 1 || size == of_whole; };
  return std::equal(sizes.begin(), sizes.end() - 1, whole.begin(), goes) && sizes[3] == whole[3];
}

GateOperand Walk(const Sizes& sizes, const Sizes& whole) {
  const int64_t channels = sizes[3], row = sizes[2] * channels;
  const auto stride = [](int32_t size, int64_t floats) { return size == 1 ? 0 : floats; };
  const int64_t row_stride = stride(sizes[1], row);
  // Where a row is one pixel, the next pixel is the next row's.
  return {nullptr, stride(sizes[0], sizes[1] * row), row_stride,
          whole[2] == 1 ? row_stride : stride(sizes[2], channels)};
}

class GateOp final : public Op {
 public:
  GateOp(const Isa& isa, const Roles& roles) : isa_(isa), roles_(roles) {}

  bool Prepare(const Node& node) override {
    Sizes whole;
    if (!node.CheckOutputType({kTfLiteFloat32}) || !ReadOperands(node, &whole)) return false;
    has_gate_ = node.Input(roles_.gate) != nullptr;
    has_alpha_ = node.Input(roles_.alpha) != nullptr;
    if (has_alpha_ && !CheckChannelValues(node, roles_.alpha, whole[3])) return false;
    if (!has_alpha_ && whole[3] > kMaxOnes) {
      return node.OutputError("shape: expected at most %d channels, found %d", kMaxOnes, whole[3]);
    }
    if (!has_gate_ || !has_alpha_) ones_.assign(static_cast<size_t>(whole[3]), 1.0f);
    images_.images = whole[0];
    images_.rows = whole[1];
    images_.columns = whole[2];
    images_.channels = whole[3];
    images_.rectify_product = roles_.rectifies_product;
    node.outputs[0]->shape.assign(whole.begin(), whole.end());
    return sum_.Resize(node, roles_.addend);
  }

  size_t WorkspaceBytes(int) const override { return sum_.computed_bytes(); }
  std::optional<size_t> OverwritableInput() const override { return 0; }
  size_t OwnedBytes() const override { return ones_.size() * sizeof(float); }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void* workspace, size_t) const override {
    const auto find = [inputs](size_t position) { return static_cast<const float*>(inputs[position]); };
    const float* const addend = sum_.has_addend() ? find(roles_.addend) : nullptr;
    const bool adds_behind = sum_.computed_bytes() > 0;
    auto* const output = static_cast<float*>(outputs[0]);
    GatedImages images = images_;
    images.input.values = find(0);
    images.gate.values = has_gate_ ? find(roles_.gate) : ones_.data();
    images.slope = has_alpha_ ? find(roles_.alpha) : ones_.data();
    images.addend = adds_behind ? nullptr : addend;
    images.rectify_sum = sum_.rectifies();
    images.output = adds_behind ? static_cast<float*>(workspace) : output;
    GateImages(isa_, pool, images);
    if (adds_behind) sum_.Run(pool, images.output, addend, output);
  }

 private:
  // Finds the sizes of the product, and how each factor is walked through.
  bool ReadOperands(const Node& node, Sizes* whole) {
    const std::array<size_t, 2> positions = {0, node.Input(roles_.gate) == nullptr ? 0 : roles_.gate};
    std::array<Sizes, 2> sizes;
    for (size_t i = 0; i < positions.size(); ++i) {
      const std::vector<int32_t>& shape = node.Input(positions[i])->shape;
      if (!node.CheckInputType(positions[i], {kTfLiteFloat32})) return false;
      if (shape.size() > sizes[i].size()) {
        return node.InputError(positions[i], "shape: expected at most 4 dimensions, found %s",
                               ShapeText(shape).c_str());
      }
      sizes[i] = Pad(shape.data(), shape.size());
    }
    for (size_t i = 0; i < whole->size(); ++i) (*whole)[i] = std::max(sizes[0][i], sizes[1][i]);
    if (!GoesWith(sizes[0], *whole) || !GoesWith(sizes[1], *whole)) {
      return node.InputError(positions[1], "shape: expected one that goes with %s, found %s",
                             ShapeText(node.Input(0)->shape).c_str(),
                             ShapeText(node.Input(positions[1])->shape).c_str());
    }
    images_.input = Walk(sizes[0], *whole);
    images_.gate = positions[1] == 0 ? GateOperand{} : Walk(sizes[1], *whole);
    return true;
  }

  const Isa& isa_;
  const Roles roles_;
  bool has_gate_ = false, has_alpha_ = false;
  std::vector<float> ones_;  // in the place of a gate or slopes that are left out
  GatedImages images_ = {};
  FusedSum sum_;
};

// The roles are in the order of Roles.
template <size_t kGate, size_t kAlpha, size_t kAddend, bool kRectifiesProduct>
std::unique_ptr<Op> CreateGate(const Isa& isa) {
  return std::unique_ptr<Op>(new (std::nothrow) GateOp(isa, {kGate, kAlpha, kAddend, kRectifiesProduct}));
}

// Whether one of the inputs is a value for each of the channels, of each image or of all. How many images there are,
// and how large, is not asked here and below: a runtime that undoes its delegates to resize inputs asks anew while some
// tensors have their old shapes, and cannot go on where it then hears something else.
template <int kActivation>
bool IsGate(const TfLiteContext& context, const TfLiteNode& node) {
  if (static_cast<const TfLiteAddParams*>(node.builtin_data)->activation != kActivation) return false;
  const TfLiteIntArray &inputs = *node.inputs, &outputs = *node.outputs;
  if (inputs.size != 2 || outputs.size != 1) return false;
  std::array<Sizes, 3> sizes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int index = i < 2 ? inputs.data[i] : outputs.data[0];
    if (!IsComputedFloat(context, index)) return false;
    const TfLiteIntArray& dims = *context.tensors[index].dims;
    if (dims.size > 4 || (i == 2 && dims.size != 4)) return false;
    sizes[i] = Pad(dims.data, static_cast<size_t>(dims.size));
    if (sizes[i][3] != sizes[0][3] || sizes[i][3] > kMaxOnes) return false;
  }
  const auto is_pixel = [](const Sizes& operand) { return operand[1] == 1 && operand[2] == 1; };
  return is_pixel(sizes[0]) || is_pixel(sizes[1]);
}

bool IsPRelu(const TfLiteContext& context, const TfLiteNode& node) {
  return HasChannelValues(context, node) && context.tensors[node.inputs->data[0]].dims->size == 4;
}

// Whether the tensors are images of as many channels and the activation is none or RELU.
bool IsSum(const TfLiteContext& context, const TfLiteNode& node) {
  if (!AreComputedImages(context, node, 2)) return false;
  const int activation = static_cast<const TfLiteAddParams*>(node.builtin_data)->activation;
  const auto channels = [&](int input) { return context.tensors[node.inputs->data[input]].dims->data[3]; };
  return (activation == kTfLiteActNone || activation == kTfLiteActRelu) && channels(0) == channels(1) &&
         channels(0) <= kMaxOnes;
}

// What an ADD can be fused with.
bool IsFusedWithAdd(const OpType& writer) {
  return &writer == &kBconv2dOpType || &writer == &kGateOpType || &writer == &kRectifiedGateOpType ||
         &writer == &kPReluOpType;
}

}  // namespace

const OpType kAddOpType = {
    "ADD", 2, 2, {"input 1", "input 2"}, CreateGate<kNone, kNone, 1, false>, kTfLiteBuiltinAdd, IsSum, IsFusedWithAdd};
const OpType kGateOpType = {
    .name = "MUL",
    .min_inputs = 2,
    .max_inputs = 2,
    .input_names = {"input 1", "input 2"},
    .create = CreateGate<1, kNone, kNone, false>,
    .builtin_code = kTfLiteBuiltinMul,
    .computes = IsGate<kTfLiteActNone>,
    .wants_reader = true,
};
const OpType kRectifiedGateOpType = {
    .name = "MUL",
    .min_inputs = 2,
    .max_inputs = 2,
    .input_names = {"input 1", "input 2"},
    .create = CreateGate<1, kNone, kNone, true>,
    .builtin_code = kTfLiteBuiltinMul,
    .computes = IsGate<kTfLiteActRelu>,
    .wants_reader = true,
};
const OpType kPReluOpType = {
    .name = "PRELU",
    .min_inputs = 2,
    .max_inputs = 2,
    .input_names = {"input", "alpha"},
    .create = CreateGate<kNone, 1, kNone, false>,
    .builtin_code = kTfLiteBuiltinPrelu,
    .computes = IsPRelu,
    .sign_feed = SignFeed::kPasses,
    .wants_reader = true,
    .has_options = false,
};
const OpType kGatedSumOpType = {
    "MUL with PRELU and ADD", 4, 4, {"input 1", "input 2", "alpha", "addend"}, CreateGate<1, 2, 3, false>};
const OpType kRectifiedGatedSumOpType = {
    "MUL with RELU and ADD", 4, 4, {"input 1", "input 2", "alpha", "addend"}, CreateGate<1, 2, 3, true>};

}  // namespace litebnn
