"""Clamps in other forms become an activation, or a MAXIMUM and a MINIMUM. For example, Brevitas writes two selects, and
PACT half of |x| - |x - alpha| + alpha, or relu(x) - relu(x - alpha).

Each form is a constant below a number, then x itself, then another constant (`values.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from litebnn.analysis.affine import next_level
from litebnn.analysis.match import are_equal, fused_activation, uniform
from litebnn.analysis.transfers import CLAMPS, SELECTS, Values
from litebnn.analysis.values import lines_of, values_of, with_own_term
from litebnn.contract import ACTIVATION_RANGES, Activation
from litebnn.graph import Array, Graph, Op, Tensor, builtin_op, constant, derived, like
from litebnn.rules.build.notes import Notes
from litebnn.rules.build.ops import OP_OF_ACTIVATION

# True for the comparisons that hold if their first operand is the greater one.
_GREATER_FIRST = {"GREATER": True, "GREATER_EQUAL": True, "LESS": False, "LESS_EQUAL": False}
_OP_OF_RANGE = {ACTIVATION_RANGES[activation]: name for activation, name in OP_OF_ACTIVATION.items()}


class Clamp(NamedTuple):
    """The values of x, limited to a range; `low` and `high` may be infinite."""

    x: Tensor
    low: float
    high: float


def recognize_clamps(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in list(graph.ops):  # before the clamps of what they compute
        if find_clamp(graph, op) is None and (extreme := find_extreme(graph, op)) is not None:
            graph.replace(op, extreme)
            changed = True
    for op in reversed(list(graph.ops)):  # of two selects, only the second one has both limits
        if (clamp := find_clamp(graph, op)) is not None:
            _replace(graph, op, clamp)
            changed = True
    return changed


def find_clamp(graph: Graph, op: Op) -> Clamp | None:
    """Returns the range to which an op limits a tensor. None for the ops that only clamp, and for products with a mask,
    whose readers name the MUL as their reason."""
    masks = op.name == "MUL" and uniform(op.input(0)) is None and uniform(op.input(1)) is None
    if op.name in CLAMPS or masks or len(op.outputs) != 1 or op.output.type != "FLOAT32":
        return None
    function = values_of(graph, op.output)
    clamp = _clamp(op, with_own_term(graph, function))
    is_sum = op.name in ("ADD", "SUB") and any(_rectifies(graph, tensor) for tensor in function.linear_terms)
    return _clamp(op, lines_of(graph, op.output)) if clamp is None and is_sum else clamp


def _clamp(op: Op, function: Values) -> Clamp | None:
    """Returns the range to which `function`, the values of an op's output, limits a tensor."""
    x, edges, values = function.x, function.edges, function.values
    if x is None or x.dims != op.output.dims or x.type != "FLOAT32" or [*function.linear_terms] != [x]:
        return None
    factors = function.linear_terms[x]
    own = int(np.argmax(factors))  # where the output is x itself
    below, above = own, len(edges) - own
    if max(below, above) != 1 or factors[own] != 1 or np.count_nonzero(factors) > 1 or values[own] != 0:
        return None
    if (below and not _meet(values[0], edges[0])) or (above and not _meet(values[-1], edges[-1])):
        return None
    return Clamp(x, float(values[0]) if below else -np.inf, float(values[-1]) if above else np.inf)


def _rectifies(graph: Graph, tensor: Tensor) -> bool:
    op = graph.producer(tensor)
    return op is not None and (op.name == "RELU" or fused_activation(op) == Activation.RELU)


def _meet(limit: Array, edge: Array) -> bool:
    """True if a clamp may change to `limit` at `edge`: x is the limit there, or just before."""
    limits = limit.astype(np.float32)
    return bool(edge == limits or edge == next_level(limits, up=True))


def find_extreme(graph: Graph, op: Op) -> Op | None:
    """Returns the MAXIMUM or MINIMUM that a select computes if it compares the two tensors from which it selects; None
    for other ops."""
    if op.name not in SELECTS or op.output.type != "FLOAT32":
        return None
    condition, *picked = map(op.input, range(3))
    while (inverse := graph.producer(condition, "LOGICAL_NOT")) is not None:
        condition, picked = inverse.input(0), picked[::-1]
    comparison = graph.producer(condition, *_GREATER_FIRST)
    if comparison is None or condition.dims != op.output.dims:
        return None
    sides = [comparison.input(0), comparison.input(1)]
    for is_first, order in ((True, picked), (False, picked[::-1])):
        if all(map(are_equal, sides, order)):
            name = "MAXIMUM" if _GREATER_FIRST[comparison.name] == is_first else "MINIMUM"
            return builtin_op(name, sides, op.output)
    return None


def _replace(graph: Graph, op: Op, clamp: Clamp) -> None:
    x, (*before, last) = clamp.x, _ops_of(clamp.low, clamp.high)
    for name, limit in before:
        low = like(x, derived(op.output.name, f"/{name.lower()}"))
        x = graph.insert(_clamp_op(name, x, limit, low), before=op).output
    graph.replace(op, _clamp_op(last[0], x, last[1], op.output))


def _ops_of(low: float, high: float) -> list[tuple[str, float]]:
    """Returns the names and limits of the one or two ops that limit values to a range."""
    if (low, high) in _OP_OF_RANGE:
        return [(_OP_OF_RANGE[low, high], high)]
    both = (_OP_OF_RANGE.get((low, np.inf), "MAXIMUM"), low), ("MINIMUM", high)
    return [(name, limit) for name, limit in both if np.isfinite(limit)]


def _clamp_op(name: str, x: Tensor, limit: float, output: Tensor) -> Op:
    number = constant(derived(output.name, "/limit"), np.asarray(limit, np.float32))
    return builtin_op(name, [x] if name in _OP_OF_RANGE.values() else [x, number], output)
