// MUL and ADD with a constant per channel, which are the runtime's own ops: a batch norm and a RELU after it.
//
// Most of these nodes are fused with others. If their result is only packed into signs, they become part of the
// packing. After a CONCATENATION, they read its inputs directly. The ops of this file run the nodes that cannot be
// fused, because the runtime reads their output too or they are in another order.
#include <algorithm>

#include "tflite/ops/op_list.h"
#include "tflite/ops/parts.h"

namespace litebnn {
namespace {

// Estimated cycles to load a value from the L2 cache and to store the result.
constexpr double kCyclesPerValue = 0.3;

const float* From(const float* constants, int64_t first) { return constants == nullptr ? nullptr : constants + first; }

// Inputs: the parts of an image, then the multiplier, the addend, or both. Multiplier and addend are optional.
template <bool kHasMultiplier, bool kHasAddend>
class AffineOp final : public Op {
 public:
  explicit AffineOp(const Isa&) {}

  bool Prepare(const Node& node) override {
    const size_t part_count = node.inputs.size() - kHasMultiplier - kHasAddend;
    if (!node.CheckOutputType({kTfLiteFloat32}) || !parts_.ReadWithConstants(node, part_count)) return false;
    // MUL's options begin with the activation too.
    rectify_ = static_cast<const TfLiteAddParams*>(node.builtin_data)->activation == kTfLiteActRelu;
    node.outputs[0]->shape = parts_.shape;
    return true;
  }

  std::optional<size_t> OverwritableInput() const override { return 0; }

  size_t PartCount() const override { return parts_.channels.size(); }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*, size_t part) const override {
    const int64_t first = parts_.FirstChannel(part);
    const auto* multiplier = static_cast<const float*>(kHasMultiplier ? inputs[PartCount()] : nullptr);
    const auto* addend = static_cast<const float*>(kHasAddend ? inputs[PartCount() + kHasMultiplier] : nullptr);
    const auto write = multiplier == nullptr ? &AffineOp::Write<false, true>
                       : addend == nullptr   ? &AffineOp::Write<true, false>
                                             : &AffineOp::Write<true, true>;
    const int32_t channels = parts_.channels[part];
    const auto* input = static_cast<const float*>(inputs[part]);
    auto* output = static_cast<float*>(outputs[0]) + first;
    const LoopSize size = {parts_.rows(), 1, kCyclesPerValue * channels};
    ParallelFor(pool, size, [=](int, int64_t begin, int64_t end) {
      (this->*write)(input + begin * channels, end - begin, channels, From(multiplier, first), From(addend, first),
                     output + begin * parts_.whole_channels());
    });
  }

 private:
  template <bool kMultiplies, bool kAdds>
  void Write(const float* input, int64_t rows, int32_t channels, const float* multiplier, const float* addend,
             float* output) const {
    const bool rectify = rectify_;
    for (; rows > 0; --rows, input += channels, output += parts_.whole_channels()) {
      for (int32_t c = 0; c < channels; ++c) {
        const float product = kMultiplies ? input[c] * multiplier[c] : input[c];
        const float value = kAdds ? product + addend[c] : product;
        output[c] = rectify && !(value > 0.0f) ? 0.0f : value;
      }
    }
  }

  Parts parts_;
  bool rectify_ = false;
};

template <int kActivation>
bool Computes(const TfLiteContext& context, const TfLiteNode& node) {
  return static_cast<const TfLiteAddParams*>(node.builtin_data)->activation == kActivation &&
         HasChannelValues(context, node);
}

// True if a MUL or ADD after `writer` is claimed because the two can be fused. After any other op, a MUL or ADD is
// claimed only if its output becomes signs.
bool ReadsImages(const OpType& writer) {
  return &writer == &kConcatenationOpType || &writer == &kMaxPool2dOpType || &writer == &kScaleOpType ||
         &writer == &kShiftOpType;
}

}  // namespace

const OpType kScaleOpType = {"MUL",
                             2,
                             2,
                             {"input", "multiplier"},
                             CreateOp<AffineOp<true, false>>,
                             kTfLiteBuiltinMul,
                             Computes<kTfLiteActNone>,
                             ReadsImages,
                             SignFeed::kPasses};
const OpType kShiftOpType = {"ADD",
                             2,
                             2,
                             {"input", "addend"},
                             CreateOp<AffineOp<false, true>>,
                             kTfLiteBuiltinAdd,
                             Computes<kTfLiteActNone>,
                             ReadsImages,
                             SignFeed::kPasses};
const OpType kRectifiedShiftOpType = {
    "ADD",      2, 2, {"input", "addend"}, CreateOp<AffineOp<false, true>>, kTfLiteBuiltinAdd, Computes<kTfLiteActRelu>,
    ReadsImages};
const OpType kAffineOpType = {"MUL with ADD", 3, kMaxParts + 2, {"input"}, CreateOp<AffineOp<true, true>>};

}  // namespace litebnn
