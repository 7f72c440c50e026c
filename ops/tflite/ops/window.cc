#include "tflite/ops/window.h"

#include <algorithm>
#include <limits>

#include "tflite/ops/contract.h"

namespace litebnn {

bool SlideWindow(const Node& node, const WindowAxis& axis, int32_t padding, int32_t* output, int32_t* pad_before) {
  const int64_t reach = int64_t{axis.filter - 1} * axis.dilation + 1;
  int64_t steps;
  if (padding == contract::kPaddingSame) {
    steps = (int64_t{axis.input} + axis.stride - 1) / axis.stride;
  } else {
    const int64_t padded = int64_t{axis.input} + axis.pad_before + axis.pad_after;
    if (reach > padded) {
      return node.InputError(0, "%s: expected at least %lld, which the filter reaches over, found %lld", axis.name,
                             static_cast<long long>(reach), static_cast<long long>(padded));
    }
    steps = (padded - reach) / axis.stride + 1;
  }
  const int64_t covered = (steps - 1) * axis.stride + reach;
  if (covered > std::numeric_limits<int32_t>::max()) {
    return node.InputError(0, "%s: expected at most 2147483647 with its padding, found %lld", axis.name,
                           static_cast<long long>(covered));
  }
  *output = static_cast<int32_t>(steps);
  *pad_before = padding == contract::kPaddingSame ? static_cast<int32_t>(std::max(covered - axis.input, int64_t{0}) / 2)
                                                  : axis.pad_before;
  return true;
}

}  // namespace litebnn
