// The arithmetic of a window that slides along one spatial axis.
#pragma once

#include <cstdint>

#include "tflite/runtime/node.h"

namespace litebnn {

struct WindowAxis {
  const char* name;  // "height" or "width"
  int32_t input, filter, stride, dilation;
  int32_t pad_before = 0, pad_after = 0;  // explicit padding, which is added before VALID
};

// Computes the output size and the padding before the input as TensorFlow does for `padding` (see contract.h). If the
// output would be empty, or the padded input longer than INT32_MAX, reports an error and returns false.
bool SlideWindow(const Node& node, const WindowAxis& axis, int32_t padding, int32_t* output, int32_t* pad_before);

}  // namespace litebnn
