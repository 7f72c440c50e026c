"""Says in words why the input of a layer is not a sign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from litebnn.analysis.grids import is_quantized
from litebnn.analysis.match import fused_activation, uniform
from litebnn.analysis.padding import PADDING, PADS, constant_padding
from litebnn.analysis.signs import find_two_values
from litebnn.analysis.sums import handed_on
from litebnn.analysis.transfers import TO_INTEGERS
from litebnn.analysis.values import values_of
from litebnn.analysis.walks import MOST_OPS
from litebnn.contract import LCE_DEQUANTIZE
from litebnn.graph import Graph, Op, Question, Tensor, facts

NO_SIGN = "its input is not the output of a sign"
# The arithmetic ops that may occur between a quantizer (a sign) and a layer. Ops that only move values may occur there
# too.
_ARITHMETIC = ("MUL", "DIV", "ADD", "SUB")
_STANDS_BETWEEN = "stands between the sign and it"


@dataclass(frozen=True)
class _Read:
    """A _Read says which upstream op (`source`) computes the values of a tensor, and through which ops the values then
    pass.
    """

    # The upstream op that computes the values.
    source: Op
    # The reason why the output of `source` is no sign; None if the output is a sign or takes two other values.
    reason: str | None
    # The ops between `source` and the tensor, beginning with the last one.
    passed: tuple[Op, ...] = ()


def _read(graph: Graph, tensor: Tensor) -> _Read | None:
    op = graph.producer(tensor)
    if op is None or not op.inputs or op.inputs[0] is None:
        return None
    if op.name == LCE_DEQUANTIZE or find_two_values(graph, tensor) is not None:
        return _Read(op, None)
    if (reason := _why_values_are_none(graph, op, tensor)) is not None:
        return _Read(op, reason)
    before = read_of(graph, op.input(0)) if _is_passed(op) else None
    return None if before is None or len(before.passed) == MOST_OPS else replace(before, passed=(op, *before.passed))


read_of = Question(_read, lambda op: op.inputs[:1] if _is_passed(op) else ())


def why_no_sign(graph: Graph, tensor: Tensor) -> str:
    """Returns the reason why a layer that reads `tensor` is not binary."""
    read = read_of(graph, tensor)
    is_sign = read is not None and read.source.name == LCE_DEQUANTIZE
    if read is None or (is_sign and not read.passed and tensor.type != "FLOAT32"):
        return NO_SIGN
    if read.reason is None:
        return next(filter(None, map(_obstacle, read.passed)), None) or _between(read.passed, is_sign)
    keeps = _keeps_levels if read.source.name in TO_INTEGERS else _keeps_values
    changing = [op.name for op in read.passed if not keeps(op)]
    is_ternary = read.source.name == "SIGN" and _takes_values_of_sign(graph, tensor)
    return f"{changing[-1]} {_STANDS_BETWEEN}" if changing and not is_ternary else read.reason


def _takes_values_of_sign(graph: Graph, tensor: Tensor) -> bool:
    """True if the values of a tensor are -1, 0 and 1, up to the rounding of its quantization. For example, the
    quantization may represent 0 inexactly.
    """
    values = values_of(graph, tensor)
    distinct = np.unique(values.values)
    return values.is_known and distinct.size == 3 and bool(np.all(np.abs(distinct - [-1, 0, 1]) <= values.step))


def _is_passed(op: Op) -> bool:
    handed = handed_on(op) == (0,) or op.name in (*PADDING, "MAX_POOL_2D")  # a pool may have an activation
    return handed or op.name in _ARITHMETIC or facts(op).keeps_signs


def _keeps_values(op: Op) -> bool:
    """True if an op's output values are values of its input, apart from padding."""
    return op.name not in _ARITHMETIC and not facts(op).keeps_signs and not _clamps(op)


def _clamps(op: Op) -> bool:
    """True if an op is a MAX_POOL_2D whose fused activation clamps the values."""
    return op.name == "MAX_POOL_2D" and fused_activation(op) != 0


def _keeps_levels(op: Op) -> bool:
    """True if an op's output takes as many different values as its input, apart from padding."""
    return _keeps_values(op) or (op.name in _ARITHMETIC and any(uniform(tensor) is not None for tensor in op.inputs))


def _between(passed: Sequence[Op], is_sign: bool) -> str:
    """For a layer whose input comes from a sign or from two values, returns the reason why the layer is not binary. The
    reason names the last op between source and layer that changes the values.
    """
    changing = [op.name for op in passed if not _keeps_values(op)]
    if not changing and not is_sign:
        return "its input takes two values that are not ±1"
    others = changing or [op.name for op in passed if op.name not in PADS] or ["padding"]
    return f"{others[-1]} {_STANDS_BETWEEN}"


def _why_values_are_none(graph: Graph, op: Op, tensor: Tensor) -> str | None:
    """Returns the reason why an op's output is not a sign; None if the op's inputs may be the reason."""
    if op.name == "SIGN":
        return _why_sign_is_none(graph, op)
    if (value := values_of(graph, tensor).constant) is not None:
        return f"its input is {value:g}, whatever the model's is"
    several = "its input takes several levels (as of a DoReFa quantizer), not ±1"
    return several if op.name in TO_INTEGERS else None


def _why_sign_is_none(graph: Graph, sign: Op) -> str:
    """Returns the reason why a SIGN op is not a sign of ±1."""
    tensor, grid = sign.input(0), None
    while (op := graph.producer(tensor)) is not None and op.name in ("QUANTIZE", "DEQUANTIZE", "ADD", "SUB"):
        computed = [operand for operand in op.inputs if operand is not None and not operand.is_constant]
        if not computed:
            break
        grid = tensor if is_quantized(tensor) else grid
        tensor = computed[0]
    if op is not None and op.name == "SIGN" and grid is not None:
        return f'the grid of "{grid.name}" does not tell the three values of sign(x) apart'
    if (value := values_of(graph, sign.output).constant) is not None:
        return f"its input is {value:g}, whatever the model's is"
    return "its input is sign(x), which is 0 where x is 0 (ternary): use ste_sign, or the option assume_nonzero"


def _obstacle(op: Op) -> str | None:
    """Returns the reason why an op between a sign and a layer cannot work on bits, if its parameters prevent that;
    otherwise None.
    """
    if op.name == "SPACE_TO_BATCH_ND" and (op.input(1).array is None or op.input(2).array is None):
        return "its space-to-batch padding is computed when the model runs"
    if _clamps(op):
        return f"the activation of {op.name} {_STANDS_BETWEEN}"
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
