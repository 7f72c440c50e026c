// The list of ops, for registering, claiming and running. To add an op, add a file for it and a line here.
#pragma once

#include "tflite/ops/op.h"
#include "tflite/runtime/execution_plan.h"

namespace litebnn {

#define LITEBNN_OP_TYPES(OP) \
  OP(kQuantizeOpType)        \
  OP(kDequantizeOpType)      \
  OP(kBMaxPool2dOpType)      \
  OP(kBconv2dOpType)         \
  OP(kUnpackWeightsOpType)   \
  OP(kAddOpType)             \
  OP(kScaleOpType)           \
  OP(kShiftOpType)           \
  OP(kRectifiedShiftOpType)  \
  OP(kGateOpType)            \
  OP(kRectifiedGateOpType)   \
  OP(kMaxPool2dOpType)       \
  OP(kConcatenationOpType)   \
  OP(kInt8Conv2dOpType)      \
  OP(kInt8AddOpType)         \
  OP(kInt8ScaleOpType)       \
  OP(kInt8ShiftOpType)       \
  OP(kAveragePool2dOpType)   \
  OP(kInt8MaxPool2dOpType)   \
  OP(kFloatAverageOpType)    \
  OP(kPReluOpType)

#define LITEBNN_DECLARE(type) extern const OpType type;
LITEBNN_OP_TYPES(LITEBNN_DECLARE)
#undef LITEBNN_DECLARE

#define LITEBNN_ADDRESS(type) &type,
inline constexpr const OpType* kOpTypes[] = {LITEBNN_OP_TYPES(LITEBNN_ADDRESS)};
#undef LITEBNN_ADDRESS
#undef LITEBNN_OP_TYPES

// A convolution fused with an ADD, whose other operand is the last input. Models do not contain this op; only fusion
// makes it.
extern const OpType kBconv2dAddOpType;

// A convolution fused with an ADD of int8 images. Node::fused_outputs[0] is the output of the convolution before the
// fusion.
extern const OpType kBconv2dInt8AddOpType;

// A convolution fused with a MUL by a gate, a PRELU and an ADD. Gate, alpha and addend are the last inputs; the first
// two are optional. Only fusion makes this op.
extern const OpType kGatedBconv2dOpType;

// The packing of signs fused with a batch norm before it (MUL, ADD or both, with constants per channel). Several such
// packings may be fused with the CONCATENATION after them. Each slice has the inputs image, multiplier and addend; the
// multiplier or the addend may be left out. Only fusion makes this op.
extern const OpType kAffineQuantizeOpType;

// The packing of an image's signs and the AVERAGE_POOL_2D of the same image, fused with a batch norm before both. The
// inputs are image, multiplier and addend; the last two may be left out. The outputs are the packed signs and the
// average. Only fusion makes this op.
extern const OpType kAverageQuantizeOpType;

// The packing of int8 signs fused with a batch norm of int8 before it. Several such packings may be fused with the
// CONCATENATION after them, as those of kAffineQuantizeOpType. Node::fused_outputs are the outputs of MUL and ADD of
// each slice. Only fusion makes this op.
extern const OpType kInt8NormQuantizeOpType;

// A MUL, an ADD or both, with constants per channel. The inputs are an image, or the inputs of a CONCATENATION, then a
// multiplier and an addend. The multiplier or the addend may be left out. Only fusion makes this op.
extern const OpType kAffineOpType;

// Two ops that compute a max pool between MUL and ADD. Their inputs are those of kAffineOpType: one or more images, a
// multiplier and an addend. The second op also computes a RELU at the end. Only fusion makes these ops.
extern const OpType kAffineMaxPool2dOpType;
extern const OpType kRectifiedMaxPool2dOpType;

// A MUL by a gate, then PRELU, then ADD. The inputs are both factors, alpha and the addend. The second factor, and
// either alpha or the addend, may be left out. The rectified form has a RELU after the MUL and no PRELU. Only fusion
// makes these ops.
extern const OpType kGatedSumOpType;
extern const OpType kRectifiedGatedSumOpType;

// Checks that the input at `position` has the type `type` and one value per channel; reports an error if not.
bool CheckChannelValues(const Node& node, size_t position, int32_t channels, TfLiteType type = kTfLiteFloat32);

// Returns the tensor with this index. Returns null if there is no such tensor, or if its rank is unknown.
const TfLiteTensor* FindTensor(const TfLiteContext& context, int index);

// True if the tensor is float32, not constant and of known rank.
bool IsComputedFloat(const TfLiteContext& context, int index);

// True if the node has two inputs and one output of the type `type`, and only the second input is a constant. This
// constant has one value per channel.
bool HasChannelValues(const TfLiteContext& context, const TfLiteNode& node, TfLiteType type = kTfLiteFloat32);

// True if the node has `inputs` inputs and one output, and all are float32 images: four dimensions, not constant. A
// tensor of unknown shape does not count as an image.
bool AreComputedImages(const TfLiteContext& context, const TfLiteNode& node, size_t inputs);

// The value of OpType::follows for ops that are claimed only because of the ops that read their output or their input.
inline bool FollowsNothing(const OpType&) { return false; }

// True if the scale is above 0 and finite, and the zero point fits an int8.
bool IsValid(const Int8Grid& grid);

// True for an int8 image that is not constant, and has a valid scale and zero point.
bool IsComputedInt8Image(const TfLiteContext& context, int index);

inline Int8Grid GridOf(const TfLiteTensor& tensor) { return {tensor.params.scale, tensor.params.zero_point}; }
inline Int8Grid GridOf(const Tensor& tensor) { return {tensor.quantization.scale, tensor.quantization.zero_point}; }

// Computes the lowest and the highest int8 value that a fused activation allows. Returns false for an activation that
// runtimes do not fuse.
bool FindActivationLevels(int activation, const Int8Grid& grid, int32_t* low, int32_t* high);

}  // namespace litebnn
