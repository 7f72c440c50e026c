// ADD, the runtime's own op, where it adds to a binary convolution: claimed with it, as the two are one in the kernels.
#pragma once

#include "tflite/abi.h"

namespace litebnn {

struct OpType;

// The op for a node that adds two float32 tensors of one shape, neither of them a constant, with no activation or RELU.
// Null for any other node.
const OpType* FindAddition(const TfLiteContext& context, const TfLiteRegistration& registration,
                           const TfLiteNode& node);

}  // namespace litebnn
