"""Finds tensors in which many numbers are exactly 0, so that the third value of sign(x) counts.

Most tensors are seldom 0. The output of a ReLU, a padded tensor and a sum of signs are 0 in many places. Products and
pools, for example, hand these zeros on.
"""

from __future__ import annotations

import numpy as np

from litebnn.analysis.affine import next_level
from litebnn.analysis.layouts import picked_from
from litebnn.analysis.match import fused_activation, number_of, output_limits
from litebnn.analysis.numbers.lattices import lattice_of
from litebnn.analysis.numbers.saturations import saturations_of
from litebnn.analysis.padding import PADDING, constant_padding
from litebnn.analysis.transfers import TO_INTEGERS, Values
from litebnn.analysis.values import values_of
from litebnn.graph import Graph, Op, Question, Tensor

Reasons = frozenset[str]
PADDED = "it is padded with zeros"
OF_SIGNS = "it is a sum of signs without an offset"
ONE_OF_FEW = "0 is one of its few values"
_ON_ONE_SIDE = "it is 0 on one side of a number"
_CANCELS = "numbers of clamps or padding cancel in a sum"
_NONE: Reasons = frozenset()
_OF_CONSTANT: Reasons = frozenset({"it has constants of 0"})
# Ops whose output is 0 where their first input is.
_KEEPS = (
    *("ABS", "AVERAGE_POOL_2D", "CUMSUM", "DEPTHWISE_CONV_2D", "DEQUANTIZE", "DIV", "ELU", "GELU", "HARD_SWISH"),
    *("L2_NORMALIZATION", "LEAKY_RELU", "MAX_POOL_2D", "MEAN", "NEG", "PRELU", "QUANTIZE", "RELU", "RELU6"),
    *("RELU_0_TO_1", "RELU_N1_TO_1", "RESIZE_BILINEAR", "SIGN", "SQRT", "SQUARE", "SUM", "TANH", *PADDING),
)
# Ops whose output is 0 where one of their inputs is, or where both are.
_OF_ANY, _OF_BOTH = ("CONCATENATION", "MAXIMUM", "MINIMUM", "MUL", "PACK"), ("ADD", "SUB")


def _read(op: Op) -> list[Tensor | None]:
    if op.name in (*_OF_ANY, *_OF_BOTH):
        return op.inputs
    if op.name in _KEEPS:
        return op.inputs[:1]
    return [op.optional(index) for index in picked_from(op)]


def _zeros(graph: Graph, tensor: Tensor) -> Reasons:
    array, op = tensor.array, graph.producer(tensor)
    if array is not None:
        return _OF_CONSTANT if np.any(array == 0) else _NONE
    if op is None:
        return _NONE
    values = values_of(graph, tensor)
    if _has_zero_level(values):
        return frozenset({ONE_OF_FEW if values.is_known else _ON_ONE_SIDE})
    lattice = None if values.is_known else lattice_of(graph, tensor)
    if lattice is None:
        return _found(graph, op)
    return (_found(graph, op) - {PADDED} or frozenset({OF_SIGNS})) if lattice.has_zero else _NONE


def _found(graph: Graph, op: Op) -> Reasons:
    read = [_NONE if each is None else zeros_of(graph, each) for each in _read(op)]
    if op.name in _OF_BOTH and not all(read):
        read = []
    if op.name == "DEPTHWISE_CONV_2D" and not _has_zeros(op.optional(2)):
        read = []
    found = _made_by(graph, op).union(*read)
    if op.name not in _OF_BOTH:
        return found
    are_computed = not any(each is None or each.is_constant for each in op.inputs)
    cancels = are_computed and 0 in saturations_of(graph, op.output)
    return found - _OF_CONSTANT or (frozenset({_CANCELS}) if cancels else _NONE)


def _has_zero_level(values: Values) -> bool:
    """True if a function is 0 for more than a single number, unlike SIGN."""
    is_single = next_level(values.edges[:-1], up=True) == values.edges[1:]
    is_zero = (values.values == 0) & ~np.pad(is_single, 1)[: len(values.values)]
    return bool(np.any(np.all([is_zero, *(factors == 0 for factors in values.linear_terms.values())], axis=0)))


def _has_zeros(constant: Tensor | None) -> bool:
    """True for a constant with zeros, and for a bias that is left out."""
    return constant is None or (constant.array is not None and bool(np.any(constant.array == 0)))


def _made_by(graph: Graph, op: Op) -> Reasons:
    """Returns the reason if the op itself makes zeros of other numbers."""
    padding = constant_padding(op) if op.name in PADDING else None
    if padding is not None and padding.value == 0 and np.any(padding.amounts):
        return frozenset({PADDED})
    low, _ = output_limits(op)
    clamps = low == 0 or op.name == "HARD_SWISH"
    slopes = op.optional(1) if op.name == "PRELU" else None
    is_flat = getattr(op.options, "alpha", None) == 0 or (slopes is not None and _has_zeros(slopes))
    limits = op.name in ("MAXIMUM", "MINIMUM") and any(number_of(graph, each) == 0 for each in op.inputs)
    rounds = op.name in (*TO_INTEGERS, "FLOOR_DIV") or (op.name == "CAST" and op.input(0).type != "FLOAT32")
    name = f"the activation of {op.name}" if fused_activation(op) else op.name
    return frozenset({f"{name} gives 0"}) if clamps or is_flat or limits or rounds else _NONE


# zeros_of(graph, tensor) returns the reasons why a tensor is exactly 0 in many places; none if 0 is unlikely.
zeros_of = Question(_zeros, _read)
