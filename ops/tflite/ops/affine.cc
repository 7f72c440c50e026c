// The ops compute the runtime's own MUL and ADD nodes with a constant per channel, which are a batch norm, and a RELU
// after it.
//
// Most batch norms are fused with other nodes, and do not run here. If the result is only packed into signs, the batch
// norm becomes part of the packing. After a CONCATENATION, a batch norm of floats reads the inputs of the CONCATENATION
// directly. The ops of this file run the remaining nodes: the runtime reads their output too, or their order prevents
// fusion.
//
// The delegate claims a batch norm of int8 only if the signs of its result are packed. If the input of a channel rises,
// its batch norm only rises, or only falls. Therefore one comparison of the input with a threshold gives the sign.
#include <algorithm>
#include <vector>

#include "tflite/ops/channel_slices.h"
#include "tflite/ops/op_list.h"

namespace litebnn {
namespace {

// Estimated cycles to load a value from the L2 cache and to store the result.
constexpr double kCyclesPerValue = 0.3;

const float* From(const float* constants, int64_t first) { return constants == nullptr ? nullptr : constants + first; }

// Computes a MUL and an ADD with constants. The inputs of the op are the slices of an image (which a CONCATENATION
// would join), followed by the multiplier, the addend, or both.
template <bool kHasMultiplier, bool kHasAddend>
class AffineOp final : public Op {
 public:
  explicit AffineOp(const Isa&) {}

  bool Prepare(const Node& node) override {
    const size_t slice_count = node.inputs.size() - kHasMultiplier - kHasAddend;
    if (!node.CheckOutputType({kTfLiteFloat32}) || !slices_.ReadWithConstants(node, slice_count)) return false;
    // A MUL's options can be read as TfLiteAddParams, because both structures begin with the activation.
    rectify_ = static_cast<const TfLiteAddParams*>(node.builtin_data)->activation == kTfLiteActRelu;
    node.outputs[0]->shape = slices_.shape;
    return true;
  }

  std::optional<size_t> OverwritableInput() const override { return 0; }

  size_t SliceCount() const override { return slices_.channels.size(); }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*, size_t slice) const override {
    const int64_t first = slices_.FirstChannel(slice);
    const auto* multiplier = static_cast<const float*>(kHasMultiplier ? inputs[SliceCount()] : nullptr);
    const auto* addend = static_cast<const float*>(kHasAddend ? inputs[SliceCount() + kHasMultiplier] : nullptr);
    const auto write = multiplier == nullptr ? &AffineOp::Write<false, true>
                       : addend == nullptr   ? &AffineOp::Write<true, false>
                                             : &AffineOp::Write<true, true>;
    const int32_t channels = slices_.channels[slice];
    const auto* input = static_cast<const float*>(inputs[slice]);
    auto* output = static_cast<float*>(outputs[0]) + first;
    const LoopSize size = {slices_.rows(), 1, kCyclesPerValue * channels};
    ParallelFor(pool, size, [=](int, int64_t begin, int64_t end) {
      (this->*write)(input + begin * channels, end - begin, channels, From(multiplier, first), From(addend, first),
                     output + begin * slices_.whole_channels());
    });
  }

 private:
  template <bool kMultiplies, bool kAdds>
  void Write(const float* input, int64_t rows, int32_t channels, const float* multiplier, const float* addend,
             float* output) const {
    const bool rectify = rectify_;
    for (; rows > 0; --rows, input += channels, output += slices_.whole_channels()) {
      for (int32_t c = 0; c < channels; ++c) {
        const float product = kMultiplies ? input[c] * multiplier[c] : input[c];
        const float value = kAdds ? product + addend[c] : product;
        output[c] = rectify && !(value > 0.0f) ? 0.0f : value;
      }
    }
  }

  ChannelSlices slices_;
  bool rectify_ = false;
};

// The largest number of channels of an int8 batch norm that the delegate claims. The limit keeps small hostile files
// from taking long. Finding a channel's threshold takes a tenth of a microsecond, and any number of nodes may share
// constants.
constexpr int kMostInt8Channels = 1 << 12;

// Estimated cycles of one product or sum in fixed point.
constexpr double kCyclesPerLevel = 8;

bool Set(const Int8Grid& image, const Int8Grid& constant, const Int8Grid& result, Int8Product* product) {
  return product->Set(image, constant, result);
}

bool Set(const Int8Grid& image, const Int8Grid& constant, const Int8Grid& result, Int8Sum* sum) {
  return sum->Set({image, constant, result, -128, 127});
}

bool OtherGrids(const Node& node) { return node.Error("expected the grids that were claimed, found others"); }

// Checks the input at `position`, and returns its values; null after reporting an error.
const int8_t* ReadChannelValues(const Node& node, size_t position, int32_t channels) {
  if (!CheckChannelValues(node, position, channels, kTfLiteInt8)) return nullptr;
  const void* const values = node.Input(position)->constant;
  if (values == nullptr) node.InputError(position, "expected a constant, found none");
  return static_cast<const int8_t*>(values);
}

template <typename Arithmetic>
class Int8ChannelOp final : public Op {
 public:
  explicit Int8ChannelOp(const Isa&) {}

  bool Prepare(const Node& node) override {
    if (!node.CheckInputType(0, {kTfLiteInt8}) || !node.CheckOutputType({kTfLiteInt8})) return false;
    const Tensor& image = *node.Input(0);
    if (image.shape.empty()) return node.InputError(0, "shape: expected at least 1 dimension, found a scalar");
    channels_ = image.shape.back();
    if (ReadChannelValues(node, 1, channels_) == nullptr) return false;
    if (!Set(GridOf(image), GridOf(*node.Input(1)), GridOf(*node.outputs[0]), &arithmetic_)) return OtherGrids(node);
    rows_ = CountValues(image.shape, 0, image.shape.size() - 1);
    node.outputs[0]->shape = image.shape;
    return true;
  }

  std::optional<size_t> OverwritableInput() const override { return 0; }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*, size_t) const override {
    const auto *image = static_cast<const int8_t*>(inputs[0]), *constants = static_cast<const int8_t*>(inputs[1]);
    auto* const output = static_cast<int8_t*>(outputs[0]);
    ParallelFor(pool, {rows_, 1, kCyclesPerLevel * channels_}, [=](int, int64_t begin, int64_t end) {
      for (int64_t first = begin * channels_; first < end * channels_; first += channels_) {
        for (int32_t c = 0; c < channels_; ++c) output[first + c] = arithmetic_(image[first + c], constants[c]);
      }
    });
  }

 private:
  Arithmetic arithmetic_;
  int64_t rows_ = 0;
  int32_t channels_ = 0;
};

// Packs the signs of int8 batch norms, and concatenates the packed signs. Each slice of the result has three inputs:
// values, multiplier and addend, the latter two optional.
class Int8NormQuantizeOp final : public Op {
 public:
  explicit Int8NormQuantizeOp(const Isa& isa) : isa_(isa) {}

  bool Prepare(const Node& node) override {
    const size_t slice_count = node.inputs.size() / kInputs;
    if (!node.CheckOutputType({kTfLiteInt32}) || !slices_.Read(node, slice_count, kTfLiteInt8, kInputs)) return false;
    first_words_ = slices_.FirstWords();
    // The thresholds are computed only when the node is first prepared, because the constants do not change afterwards.
    const bool is_first = thresholds_.size() != static_cast<size_t>(slices_.whole_channels());
    if (is_first) {
      thresholds_.clear();
      inverted_.assign(static_cast<size_t>(first_words_.back()), 0);
    }
    for (size_t slice = 0; slice < slice_count; ++slice) {
      const int8_t* constants[2] = {nullptr, nullptr};
      for (const size_t constant : {kMultiplier, kAddend}) {
        const size_t position = slice * kInputs + 1 + constant;
        if (node.Input(position) == nullptr) continue;
        constants[constant] = ReadChannelValues(node, position, slices_.channels[slice]);
        if (constants[constant] == nullptr) return false;
      }
      if (is_first && !FindThresholds(node, slice, constants[kMultiplier], constants[kAddend])) return false;
    }
    node.outputs[0]->shape = slices_.shape;
    node.outputs[0]->shape.back() = static_cast<int32_t>(first_words_.back());
    return true;
  }

  size_t OwnedBytes() const override { return thresholds_.size() + inverted_.size() * sizeof(uint32_t); }
  size_t SliceCount() const override { return slices_.channels.size(); }
  size_t InputsPerSlice() const override { return kInputs; }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*, size_t slice) const override {
    const int64_t first = first_words_[slice];
    PackInt8Comparisons(isa_, pool, static_cast<const int8_t*>(inputs[slice * kInputs]), slices_.rows(),
                        slices_.channels[slice], thresholds_.data() + slices_.FirstChannel(slice),
                        inverted_.data() + first, static_cast<uint32_t*>(outputs[0]) + first, first_words_.back());
  }

 private:
  static constexpr size_t kInputs = 3;  // per slice
  enum : size_t { kMultiplier, kAddend };

  // Finds the threshold of each channel of a slice. The threshold is the least int8 input for which the sign of the
  // result differs from the sign for -128. `multipliers` or `addends` may be null.
  bool FindThresholds(const Node& node, size_t slice, const int8_t* multipliers, const int8_t* addends) {
    const size_t image = slice * kInputs;
    Int8Grid grid = GridOf(*node.Input(image));
    const auto follow = [&](size_t constant, auto* arithmetic) {
      const Int8Grid before = grid;
      grid = GridOf(node.context->tensors[node.fused_outputs[2 * slice + constant]]);
      return Set(before, GridOf(*node.Input(image + 1 + constant)), grid, arithmetic) || OtherGrids(node);
    };
    Int8Product product;
    Int8Sum sum;
    if (multipliers != nullptr && !follow(kMultiplier, &product)) return false;
    if (addends != nullptr && !follow(kAddend, &sum)) return false;
    uint32_t* const inverted = inverted_.data() + first_words_[slice];
    const auto channels = static_cast<size_t>(slices_.channels[slice]);
    for (size_t c = 0; c < channels; ++c) {
      const auto is_negative = [&](int32_t input) {
        auto level = static_cast<int8_t>(input);
        if (multipliers != nullptr) level = product(level, multipliers[c]);
        if (addends != nullptr) level = sum(level, addends[c]);
        return level < grid.zero_point;
      };
      const bool of_lowest = is_negative(-128);
      const bool changes = is_negative(127) != of_lowest;
      int32_t same = -128, other = changes ? 127 : -128;
      while (other - same > 1) {
        const int32_t middle = (same + other) / 2;
        (is_negative(middle) == of_lowest ? same : other) = middle;
      }
      thresholds_.push_back(static_cast<int8_t>(other));
      // If the sign of a channel is the same for all inputs, the threshold is -128. No input is below -128, so
      // only `inverted` determines the sign.
      if (of_lowest != changes) inverted[c / kBitsPerWord] |= uint32_t{1} << (c % kBitsPerWord);
    }
    return true;
  }

  const Isa& isa_;
  ChannelSlices slices_;
  std::vector<int64_t> first_words_;  // first word of each slice in an output row, and the number of all words
  std::vector<int8_t> thresholds_;    // of the channels of all slices
  std::vector<uint32_t> inverted_;    // with the layout of an output row
};

template <int kActivation>
bool Computes(const TfLiteContext& context, const TfLiteNode& node) {
  return static_cast<const TfLiteAddParams*>(node.builtin_data)->activation == kActivation &&
         HasChannelValues(context, node);
}

// True if a MUL or ADD can be fused with the op `writer` before it. The delegate then claims the MUL or ADD. After
// other ops, it claims a MUL or ADD only if its output becomes signs.
bool ReadsImages(const OpType& writer) {
  return &writer == &kConcatenationOpType || &writer == &kMaxPool2dOpType || &writer == &kScaleOpType ||
         &writer == &kShiftOpType;
}

// True if the delegate can compute an int8 MUL or ADD with a constant for each channel. The node must have no
// activation and not too many channels. The scales and zero points of its tensors must be valid, and in the range that
// the class Arithmetic can represent.
template <typename Arithmetic>
bool ComputesInt8(const TfLiteContext& context, const TfLiteNode& node) {
  // A MUL's options can be read as TfLiteAddParams, because both structures begin with the activation.
  if (static_cast<const TfLiteAddParams*>(node.builtin_data)->activation != kTfLiteActNone) return false;
  if (!HasChannelValues(context, node, kTfLiteInt8)) return false;
  const TfLiteIntArray& shape = *context.tensors[node.inputs->data[0]].dims;
  if (shape.data[shape.size - 1] > kMostInt8Channels) return false;
  const auto grid = [&](int tensor) { return GridOf(context.tensors[tensor]); };
  const Int8Grid image = grid(node.inputs->data[0]), constant = grid(node.inputs->data[1]);
  const Int8Grid result = grid(node.outputs->data[0]);
  Arithmetic arithmetic;
  return IsValid(image) && IsValid(constant) && IsValid(result) && Set(image, constant, result, &arithmetic);
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
const OpType kAffineOpType = {"MUL with ADD", 3, kMaxSlices + 2, {"input"}, CreateOp<AffineOp<true, true>>};

const OpType kInt8ScaleOpType = {
    .name = "MUL",
    .min_inputs = 2,
    .max_inputs = 2,
    .input_names = {"input", "multiplier"},
    .create = CreateOp<Int8ChannelOp<Int8Product>>,
    .builtin_code = kTfLiteBuiltinMul,
    .computes = ComputesInt8<Int8Product>,
    .follows = FollowsNothing,
    .sign_feed = SignFeed::kPasses,
};
const OpType kInt8ShiftOpType = {
    .name = "ADD",
    .min_inputs = 2,
    .max_inputs = 2,
    .input_names = {"input", "addend"},
    .create = CreateOp<Int8ChannelOp<Int8Sum>>,
    .builtin_code = kTfLiteBuiltinAdd,
    .computes = ComputesInt8<Int8Sum>,
    .follows = FollowsNothing,
    .sign_feed = SignFeed::kPasses,
};
const OpType kInt8NormQuantizeOpType = {"LceQuantize with int8 MUL and ADD",
                                        3,
                                        3 * kMaxSlices,
                                        {"input", "multiplier", "addend"},
                                        CreateOp<Int8NormQuantizeOp>};

}  // namespace litebnn
