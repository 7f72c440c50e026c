"""The arithmetic of SAME padding."""

from __future__ import annotations

import numpy as np

from litebnn.graph import Array, Tensor


def same_padding(size: int, taps: int, stride: int, dilation: int) -> tuple[int, int]:
    """(before, output size) of TensorFlow's SAME padding along one axis."""
    output = -(-size // stride)
    total = max((output - 1) * stride + (taps - 1) * dilation + 1 - size, 0)
    return total // 2, output


def is_same_padding(
    amounts: Array, unpadded: Tensor, taps: tuple[int, ...], strides: tuple[int, int], dilations: tuple[int, int]
) -> bool:
    """Whether padding an NHWC tensor by `amounts` ([4, 2]) and then convolving VALID is a SAME convolution."""
    if amounts.shape != (4, 2) or np.any(amounts[[0, 3]] != 0) or np.any(amounts < 0):
        return False
    for axis in (0, 1):
        size, stride, reach = unpadded.dims[axis + 1], strides[axis], (taps[axis] - 1) * dilations[axis]
        before, after = (int(a) for a in amounts[axis + 1])
        if size < 0:
            # The padding of an unknown size is known only where it does not depend on that.
            if stride != 1 or (before, before + after) != (reach // 2, reach):
                return False
            continue
        expected, output = same_padding(size, taps[axis], stride, dilations[axis])
        if before != expected or (size + before + after - reach - 1) // stride + 1 != output:
            return False
    return True
