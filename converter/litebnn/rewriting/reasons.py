"""Why the input of a layer is no sign, in words."""

from __future__ import annotations

import numpy as np

from litebnn.contract import LCE_DEQUANTIZE
from litebnn.graph import Graph, Op, Tensor, facts
from litebnn.rewriting.int8 import is_quantized, lowest_value
from litebnn.rewriting.padding import PADS, constant_padding
from litebnn.rewriting.signs import find_constant, find_two_values

NO_SIGN = "its input is not the output of a sign"
# The output of a quantizer passes these on its way to a layer, beside ops that move values or keep their signs.
_PASSED = (*PADS, "MUL", "DIV", "ADD", "SUB", "SPACE_TO_BATCH_ND", "DEQUANTIZE", "QUANTIZE")
_FARTHEST = 5


def why_no_sign(graph: Graph, tensor: Tensor) -> str:
    """The reason that a layer which reads `tensor` is not binary."""
    passed: list[Op] = []
    for _ in range(_FARTHEST):
        op = graph.producer(tensor)
        if op is None or not op.inputs or op.inputs[0] is None:
            break
        if op.name == LCE_DEQUANTIZE and passed:
            return next(filter(None, map(_obstacle, passed)), f"{_farthest(passed)} stands between the sign and it")
        two_values = None if op.name == LCE_DEQUANTIZE else find_two_values(graph, tensor)
        if two_values is not None and (two_values.high, two_values.low) == (-1.0, 1.0):
            return "its input is the opposite of a sign"
        if op.name == "SIGN":
            return _why_sign_is_none(graph, op)
        if (value := find_constant(graph, tensor)) is not None:
            return f"its input is {value:g}, whatever the model's is"
        if op.name in ("ROUND", "FLOOR"):
            return "its input takes several levels (a DoReFa quantizer), not ±1"
        if two_values is not None:
            return "its input takes two values that are not ±1"
        if op.name not in _PASSED and not facts(op).moves and not facts(op).keeps_signs:
            break
        passed.append(op)
        tensor = op.input(0)
    return NO_SIGN


def _why_sign_is_none(graph: Graph, sign: Op) -> str:
    """Why a SIGN is no sign of ±1."""
    source = graph.producer(sign.input(0))
    if (source is not None and source.name == "RELU") or lowest_value(graph, sign.input(0)) >= 0:
        return "its input takes 0 and 1 (a heaviside quantizer), not ±1"
    tensor, grid = sign.input(0), None
    while (op := graph.producer(tensor)) is not None and op.name in ("QUANTIZE", "DEQUANTIZE", "ADD", "SUB"):
        grid = tensor if is_quantized(tensor) else grid
        tensor = op.input(1 if op.input(0).is_constant else 0)
    if op is not None and op.name == "SIGN" and grid is not None:
        return f'the grid of "{grid.name}" does not tell the three values of sign(x) apart'
    if (value := find_constant(graph, sign.output)) is not None:
        return f"its input is {value:g}, whatever the model's is"
    return "its input is sign(x), which is 0 where x is 0 (ternary): use ste_sign, or the option assume_nonzero"


def _farthest(passed: list[Op]) -> str:
    """What stands in the way, of ops none of which does by its parameters; padding by itself does not."""
    others = [op.name for op in passed if op.name not in PADS]
    return others[-1] if others else "padding"


def _obstacle(op: Op) -> str | None:
    """Why an op that stands between a sign and a layer cannot be made one of bits, where that is its parameters."""
    if op.name == "SPACE_TO_BATCH_ND" and (op.input(1).array is None or op.input(2).array is None):
        return "its space-to-batch padding is computed when the model runs"
    if op.name not in PADS:
        return None
    padding = constant_padding(op)
    if padding is None:
        return "the padding of its input is computed when the model runs"
    if np.any(padding.amounts[[0, -1]]):
        return "the batch or the channels of its input are padded"
    if padding.value not in (0.0, 1.0, -1.0):
        return f"its input is padded with {padding.value:g}, which is neither 0 nor ±1"
    return None
