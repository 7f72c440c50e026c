"""Says in words why the input of a layer is not a sign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from litebnn.analysis.affine import next_level
from litebnn.analysis.constants import ON_ELEMENTS
from litebnn.analysis.few_values import MOST_SIGNS, few_levels, handed_on
from litebnn.analysis.layouts import COMPARING
from litebnn.analysis.match import broadcast_factor, fused_activation, uniform
from litebnn.analysis.padding import PADDING, PADS, constant_padding
from litebnn.analysis.quantization import is_quantized
from litebnn.analysis.rounding import count_of_levels, is_rounded, rounded_values
from litebnn.analysis.signs import find_scaled_step, find_two_values
from litebnn.analysis.transfers import SELECTS, Values
from litebnn.analysis.values import values_of
from litebnn.analysis.walks import MOST_OPS
from litebnn.contract import LCE_DEQUANTIZE
from litebnn.graph import Graph, Op, Question, Tensor

NO_SIGN = "its input is not the output of a sign"
TERNARY = "its input is sign(x), which is 0 where x is 0 (ternary): use ste_sign, or the option assume_nonzero"
# The same with that option, which leaves signs of likely zeros as they are.
STAYS_TERNARY = "its input is sign(x), which stays 0 where x is 0, with assume_nonzero too: use ste_sign"
_SCALED = "its scale, computed when the model runs, differs between the inputs of a sum"
_OF_CHANNELS = "the values of its input differ between channels or pixels"
_SEVERAL = "its input takes several levels (as of a DoReFa quantizer), not ±1"
_ARITHMETIC = ("MUL", "DIV", "ADD", "SUB")
# The ops between a quantizer (a sign) and a layer that compute other values. Ops that only move values may occur there
# too.
_COMPUTING = (*(ON_ELEMENTS - {*SELECTS, *COMPARING}), "AVERAGE_POOL_2D", "MEAN", "SUM")
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
    # True if the reason counts the levels, which arithmetic with numbers does not change.
    of_levels: bool = False
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
    if (reason := _why_levels_are_none(graph, tensor)) is not None:
        return _Read(op, reason, of_levels=reason != TERNARY)
    found = [read_of(graph, part) for part in _passed(op)]
    reads = [read for read in found if read is not None]
    joins = op.name not in _COMPUTING and len(found) > 1
    if not reads or len(reads[0].passed) == MOST_OPS or (joins and len(reads) < len(found)):
        return None
    if joins and len({(read.source.name == LCE_DEQUANTIZE, read.reason) for read in reads}) > 1:
        return _Read(op, f"{op.name} joins signs with other values")
    return replace(reads[0], passed=(op, *reads[0].passed))


def _passed(op: Op) -> list[Tensor]:
    """Returns the inputs from whose values an op computes or selects its own."""
    if op.name in _COMPUTING:
        read = op.inputs
    else:
        is_pool = op.name in (*PADDING, "MAX_POOL_2D")  # it may have an activation, or computed amounts
        read = [op.optional(index) for index in handed_on(op) or ((0,) if is_pool else ())]
    return [tensor for tensor in read if tensor is not None and not tensor.is_constant]


read_of = Question(_read, _passed)


def why_no_sign(graph: Graph, tensor: Tensor) -> str:
    """Returns the reason why a layer that reads `tensor` is not binary."""
    read = read_of(graph, tensor)
    is_sign = read is not None and read.source.name == LCE_DEQUANTIZE
    if read is None or (is_sign and not read.passed and tensor.type != "FLOAT32"):
        return NO_SIGN
    if read.reason is None:
        return next(filter(None, map(_obstacle, read.passed)), None) or _between(graph, read.passed, is_sign)
    keeps = _keeps_levels if read.of_levels else _keeps_values
    changing = [op for op in read.passed if not keeps(op)]
    if changing and read.reason != TERNARY:
        return _in_the_way(graph, changing[-1], read.passed)
    return _in_the_way(graph, read.source, read.passed) if read.reason == _SCALED else read.reason


def _keeps_values(op: Op) -> bool:
    """True if an op's output values are values of its input, apart from padding."""
    return op.name not in _COMPUTING and not _clamps(op)


def _clamps(op: Op) -> bool:
    """True if an op is a MAX_POOL_2D whose fused activation clamps the values."""
    return op.name == "MAX_POOL_2D" and fused_activation(op) != 0


def _keeps_levels(op: Op) -> bool:
    """True if an op's output takes as many different values as its input, apart from padding."""
    return _keeps_values(op) or (op.name in _ARITHMETIC and any(uniform(tensor) is not None for tensor in op.inputs))


def _between(graph: Graph, passed: Sequence[Op], is_sign: bool) -> str:
    """For a layer whose input comes from a sign or from two values, returns the reason why the layer is not binary. The
    reason names the last op between source and layer that changes the values.
    """
    changing = [op for op in passed if not _keeps_values(op)]
    if not changing and not is_sign:
        return "its input takes two values that are not ±1"
    others = changing or [op for op in passed if op.name not in PADS]
    return _in_the_way(graph, others[-1], passed) if others else f"padding {_STANDS_BETWEEN}"


def _in_the_way(graph: Graph, op: Op, passed: Sequence[Op]) -> str:
    """Returns the reason why an op between a sign and a layer prevents that the layer is binary. The op is followed by
    some of the ops `passed`.
    """
    is_scale = broadcast_factor(op) is not None or find_scaled_step(graph, op.output) is not None
    moves = all(each.name not in ("MAX_POOL_2D", "SPACE_TO_BATCH_ND") for each in passed)
    return _SCALED if is_scale and moves else f"{op.name} {_STANDS_BETWEEN}"


def _why_values_are_none(graph: Graph, op: Op, tensor: Tensor) -> str | None:
    """Returns the reason why an op's output is not a sign; None if the op's inputs may be the reason."""
    if op.name == "SIGN":
        return _why_sign_is_none(graph, op)
    if (value := values_of(graph, tensor).constant) is not None:
        return f"its input is {value:g}, whatever the model's is"
    if find_scaled_step(graph, tensor) is not None:
        return _SCALED
    if op.name in SELECTS and all(picked is not None and picked.is_constant for picked in op.inputs[1:]):
        return _OF_CHANNELS
    return None


def _why_levels_are_none(graph: Graph, tensor: Tensor) -> str | None:
    """Returns the reason why a tensor of several levels is not a sign; None for other tensors."""
    values = rounded_values(graph, tensor) or values_of(graph, tensor)
    if values.is_known and _passes_zero(values):
        return TERNARY
    is_step = values.is_known and len(values.edges) > 1 and values.x is not None and tensor.type == "FLOAT32"
    if not is_step and not is_rounded(graph, tensor):
        return None
    count = np.unique(values.values).size if is_step else count_of_levels(graph, tensor)
    if count is None:
        return _SEVERAL
    if count > MOST_SIGNS + 1:
        return f"its input takes {count} levels, more than {MOST_SIGNS + 1}"
    return _SEVERAL if few_levels(values) else f"its input takes {count} levels that are not evenly spaced"


def _passes_zero(values: Values) -> bool:
    """True if a value between its neighbours occurs at a single number, such as the 0 of SIGN at zero."""
    low, middle, high = values.values[:-2], values.values[1:-1], values.values[2:]
    is_single = next_level(values.edges[:-1], up=True) == values.edges[1:]
    return bool(np.any(is_single & (low != middle) & ((low < middle) == (middle < high))))


def _why_sign_is_none(graph: Graph, sign: Op) -> str:
    """Returns the reason why a SIGN op is not a sign of ±1."""
    tensor, grid = sign.input(0), None
    while (op := graph.producer(tensor)) is not None and op.name in ("QUANTIZE", "DEQUANTIZE", "ADD", "SUB"):
        computed = [operand for operand in op.inputs if operand is not None and not operand.is_constant]
        if not computed:
            break
        grid = tensor if is_quantized(tensor) else grid
        tensor = computed[0]
    values = values_of(graph, sign.output)
    if op is not None and op.name == "SIGN" and grid is not None and not (values.is_known and _passes_zero(values)):
        return f'the grid of "{grid.name}" does not tell the three values of sign(x) apart'
    if (value := values.constant) is not None:
        return f"its input is {value:g}, whatever the model's is"
    return TERNARY


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
