"""Some functions are a sign except at a single number: SIGN, for example, gives 0 at 0. On request, such a function
becomes a sign that is +1 at this number."""

from __future__ import annotations

from functools import partial

from litebnn.analysis.signs import find_sign
from litebnn.analysis.sums import find_levels
from litebnn.analysis.walks import ops_upstream
from litebnn.build.notes import Notes, lowers
from litebnn.build.ops import compared, select_op
from litebnn.graph import Graph, Op, Tensor


@lowers("sign forms with a third value")
def assume_nonzero(graph: Graph, notes: Notes) -> bool:
    """Replaces a SIGN, or another function with a third value at a single number, by a sign. The report names the
    functions that were replaced.

    A SIGN after a ReLU takes only 0 and 1, and stays. A function with a third level between two thresholds, such as a
    ternary quantizer, stays too.
    """
    changed = False
    of_levels = _ops_of_levels(graph)
    for op in [op for op in graph.ops if op not in of_levels]:
        if len(op.outputs) != 1 or op.output.type != "FLOAT32" or find_sign(graph, op.output) is not None:
            continue
        sign = find_sign(graph, op.output, assume_nonzero=True)
        if sign is None or sign.x.dims != op.output.dims:
            continue
        notes.warn(op, f"taken for 1 where its input is {sign.level[0]:g} (assume_nonzero)")
        compares = "LESS_EQUAL" if sign.falls else "GREATER_EQUAL"
        condition = compared(graph, sign.x, float(sign.level[0]), op.output.name, compares, before=op)
        graph.replace(op, select_op(condition, 1.0, -1.0, op.output))
        changed = True
    return changed


def _ops_of_levels(graph: Graph) -> set[Op]:
    """Returns the ops between a tensor of few levels and the tensor from which the levels are computed."""
    found: set[Op] = set()
    for op in graph.ops:
        levels = find_levels(graph, op.output) if len(op.outputs) == 1 else None
        if levels is not None:
            found.update(ops_upstream(graph, op.output, partial(_inputs_except, levels.x), len(graph.ops)) or ())
    return found


def _inputs_except(source: Tensor | None, op: Op) -> list[Tensor | None]:
    return [tensor for tensor in op.inputs if tensor is not source]
