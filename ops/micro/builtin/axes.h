/* Walks over tensors of up to LITEBNN_AXES axes, whose innermost axis is a loop of its own. */
#ifndef LITEBNN_AXES_H
#define LITEBNN_AXES_H

#include "litebnn_builtin.h"

/* Steps to the next position of the outer axes, moves `offsets` along their strides, and returns 0 after the last. */
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
