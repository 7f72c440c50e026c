#include "tflite/ops/int8_grid.h"

#include <algorithm>
#include <cmath>

namespace litebnn {

bool IsComputedInt8Image(const TfLiteContext& context, int index) {
  const TfLiteTensor* const tensor = FindTensor(context, index);
  if (tensor == nullptr || tensor->type != kTfLiteInt8 || tensor->dims->size != 4 || IsConstant(*tensor)) return false;
  const Int8Grid grid = GridOf(*tensor);
  return std::isfinite(grid.scale) && grid.scale > 0 && grid.zero_point >= -128 && grid.zero_point <= 127;
}

bool FindActivationLevels(int activation, const Int8Grid& grid, int32_t* low, int32_t* high) {
  const auto level = [&](float value) {
    const double rounded = grid.zero_point + static_cast<double>(std::round(value / grid.scale));
    return static_cast<int32_t>(std::min(std::max(rounded, -128.0), 127.0));
  };
  *low = activation == kTfLiteActNone ? -128 : level(activation == kTfLiteActReluN1To1 ? -1.0f : 0.0f);
  *high = activation == kTfLiteActRelu6 ? level(6.0f) : activation == kTfLiteActReluN1To1 ? level(1.0f) : 127;
  return activation >= kTfLiteActNone && activation <= kTfLiteActRelu6;
}

}  // namespace litebnn
