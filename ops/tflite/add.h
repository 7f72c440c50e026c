// ADD, the runtime's own op, where it adds to a binary convolution: claimed with it, as the two are one in the kernels.
#pragma once

#include "tflite/abi.h"

namespace litebnn {

// Whether the node adds two float32 tensors of one shape, neither of them a constant, and nothing else.
bool IsPlainAddition(const TfLiteContext& context, const TfLiteRegistration& registration, const TfLiteNode& node);

}  // namespace litebnn
