// The quantization of int8 tensors of the runtime's own ops.
#pragma once

#include "kernels/kernels.h"
#include "tflite/ops/op_list.h"

namespace litebnn {

// True for an int8 image that is not constant, on a valid grid.
bool IsComputedInt8Image(const TfLiteContext& context, int index);

inline Int8Grid GridOf(const TfLiteTensor& tensor) { return {tensor.params.scale, tensor.params.zero_point}; }

// The levels that a fused activation clamps to. False for an activation that runtimes do not fuse.
bool FindActivationLevels(int activation, const Int8Grid& grid, int32_t* low, int32_t* high);

}  // namespace litebnn
