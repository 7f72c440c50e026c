/* Iterates over the elements of tensors with up to LITEBNN_AXES axes. The innermost axis is not included, because
 * callers loop over it themselves. */
#ifndef LITEBNN_AXES_H
#define LITEBNN_AXES_H

#include "litebnn_builtin.h"

/* Advances `position` to the next position along the outer axes, and each tensor's offset by its strides. Returns 0
 * after the last position. */
static inline int32_t litebnn_next(const int32_t* sizes, int32_t* position, int32_t tensors,
                                   const int32_t* const* strides, int32_t* offsets) {
  for (int32_t axis = LITEBNN_AXES - 2; axis >= 0; --axis) {
    const int32_t is_inside = ++position[axis] < sizes[axis];
    for (int32_t t = 0; t < tensors; ++t) {
      offsets[t] += is_inside ? strides[t][axis] : -(sizes[axis] - 1) * strides[t][axis];
    }
    if (is_inside) return 1;
    position[axis] = 0;
  }
  return 0;
}

#endif
