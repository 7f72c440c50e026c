// MAX_POOL_2D, the runtime's own op, where it pools what binary ops have written: claimed with them, so that the result
// is read while it is in the caches.
#pragma once

#include "tflite/runtime/abi.h"

namespace litebnn {

struct OpType;

// The op for a node that pools a float32 tensor of four dimensions that is no constant, with no activation or RELU.
// Null for any other node, and for one whose options make no sense: the runtime refuses it.
const OpType* FindMaxPool2d(const TfLiteContext& context, const TfLiteRegistration& registration,
                            const TfLiteNode& node);

}  // namespace litebnn
