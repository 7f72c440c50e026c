// The list of ops: registering, claiming and running read it. An op is added by a file of its own and a line here.
#pragma once

#include "tflite/ops/op.h"
#include "tflite/runtime/execution_plan.h"

namespace litebnn {

#define LITEBNN_OP_TYPES(OP) \
  OP(kQuantizeOpType)        \
  OP(kDequantizeOpType)      \
  OP(kBMaxPool2dOpType)      \
  OP(kBconv2dOpType)         \
  OP(kAddOpType)             \
  OP(kScaleOpType)           \
  OP(kShiftOpType)           \
  OP(kRectifiedShiftOpType)  \
  OP(kGateOpType)            \
  OP(kRectifiedGateOpType)   \
  OP(kMaxPool2dOpType)       \
  OP(kConcatenationOpType)   \
  OP(kPReluOpType)

#define LITEBNN_DECLARE(type) extern const OpType type;
LITEBNN_OP_TYPES(LITEBNN_DECLARE)
#undef LITEBNN_DECLARE

#define LITEBNN_ADDRESS(type) &type,
inline constexpr const OpType* kOpTypes[] = {LITEBNN_OP_TYPES(LITEBNN_ADDRESS)};
#undef LITEBNN_ADDRESS
#undef LITEBNN_OP_TYPES

// The convolution with its output added to its last input. No model has it: additions are fused into convolutions.
extern const OpType kBconv2dAddOpType;

// The convolution with a MUL of its output by a gate, a PRELU and an ADD: gate, alpha and addend are its last inputs,
// of which the first two may be left out. No model has it: these are fused into convolutions.
extern const OpType kGatedBconv2dOpType;

// The packing of signs behind a MUL, an ADD or both with constants for each channel, and the CONCATENATION of several
// such: of each the image, the multiplier and the addend, of which one may be left out. No model has it: these are
// fused into the packing.
extern const OpType kAffineQuantizeOpType;

// A MUL, an ADD or both with constants for each channel, which are the last inputs: either may be left out. The others
// are what a CONCATENATION has put side by side, or one image. No model has it.
extern const OpType kAffineOpType;

// The same inputs: a max pool between the MUL and the ADD, and that with a RELU at its end. No model has them.
extern const OpType kAffineMaxPool2dOpType;
extern const OpType kRectifiedMaxPool2dOpType;

// A MUL by a gate, a PRELU and an ADD behind each other: the factors, then alpha and the addend. The second factor, and
// one of the last two, may be left out. In the other form a RELU stands behind the MUL, and no PRELU. No model has
// them.
extern const OpType kGatedSumOpType;
extern const OpType kRectifiedGatedSumOpType;

// Whether the input at `position` is float32 and has as many values as there are channels. Reports it where it is not.
bool CheckChannelValues(const Node& node, size_t position, int32_t channels);

// Null where there is no such tensor, or its rank is not known.
const TfLiteTensor* FindTensor(const TfLiteContext& context, int index);

// Whether it is a float32 tensor of known rank that is no constant.
bool IsComputedFloat(const TfLiteContext& context, int index);

// Whether the node has two inputs and one output, of float32, and the second is a constant that has a value for each of
// the first one's channels.
bool HasChannelValues(const TfLiteContext& context, const TfLiteNode& node);

// Whether the node has `inputs` inputs and one output, and all of them are float32 tensors of four dimensions that are
// no constants. A shape that the model does not tell has another number of dimensions.
bool AreComputedImages(const TfLiteContext& context, const TfLiteNode& node, size_t inputs);

// The op that computes the node, null where litebnn has none.
const OpType* FindOpType(const TfLiteContext& context, const PlannedNode& planned);

}  // namespace litebnn
