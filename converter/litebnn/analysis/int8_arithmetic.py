"""Arithmetic of quantized ops as in XNNPACK, which runs them in all runtimes by default.

Its fixed-point factors have fewer bits than those of TensorFlow's own kernels, so a result may differ by a level. If a
result lies halfway between two levels, rounding errors of float arithmetic would choose one of them at random.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from litebnn.analysis.grids import from_levels, grid_range
from litebnn.graph import Array, Op, Tensor

# The number of fractional bits of the larger factor in a sum, and of the factor that converts between two grids.
_SUM_BITS, _QUANTIZE_BITS = 20, 8
_TYPES = ("INT8", "UINT8")
_SIGNS = {"ADD": (1, 1), "SUB": (1, -1)}


def computed_on_grid(op: Op, operands: Sequence[Array]) -> Array | None:
    """The float32 values of an op's output.

    Args:
        op: an op whose inputs and output have one grid each.
        operands: values of its inputs on their grids, of equal shape.

    Returns:
        The values, or None for an op whose arithmetic is unknown.
    """
    tensors = [op.input(index) for index in range(len(op.inputs))]
    grids = [_grid(tensor) for tensor in (*tensors, op.output)]
    limits = grid_range(op.output)
    if limits is None or any(grid is None for grid in grids):
        return None
    *scales, result_scale = (np.float32(grid[0]) for grid in grids if grid is not None)
    counts = [np.rint(values / scale).astype(np.int64) for values, scale in zip(operands, scales, strict=True)]
    ratios = [float(scale / result_scale) for scale in scales]
    if op.name in _SIGNS:
        factors = [sign * ratio for sign, ratio in zip(_SIGNS[op.name], ratios, strict=True)]
        sums = _weighted(counts, factors, _SUM_BITS - math.frexp(max(ratios))[1] + 1)
    elif op.name == "QUANTIZE":
        sums = _weighted(counts, ratios, _QUANTIZE_BITS)
    elif op.name == "MUL":
        sums = np.rint(np.prod(counts, axis=0).astype(np.float32) * (scales[0] * scales[1] / result_scale))
    else:
        return None
    return np.clip(from_levels(sums, float(result_scale), 0), *limits)


def _grid(tensor: Tensor) -> tuple[float, int] | None:
    return tensor.per_tensor_quantization if tensor.type in _TYPES else None


def _weighted(counts: Sequence[Array], factors: Sequence[float], bits: int) -> Array:
    """The sum of integers times fixed-point factors with that many fractional bits, rounded to the nearest integer with
    halves up.
    """
    multipliers = [round(math.ldexp(factor, bits)) for factor in factors]
    sums: Array = np.tensordot(multipliers, counts, axes=1) + (1 << (bits - 1))
    return sums >> bits
