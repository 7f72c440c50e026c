"""A function that is a sign except at one number, such as SIGN at 0 -> a sign that is +1 there, on request."""

from __future__ import annotations

import numpy as np

from litebnn.analysis.signs import Sign, find_sign, is_never_negative
from litebnn.analysis.sums import find_levels
from litebnn.build.notes import Notes
from litebnn.build.ops import as_float
from litebnn.graph import Graph, Model, Op, builtin_op, constant, derived, like


def assume_nonzero(model: Model, notes: Notes) -> None:
    """Makes signs of SIGN, and of other functions with a third value at a single number; names them in the report.

    A SIGN after a ReLU takes 0 and 1, and is left alone. So is a function with a third level between two thresholds,
    such as a ternary quantizer.
    """
    for graph in model.graphs:
        of_levels = _ops_of_levels(graph)
        for op in [op for op in graph.ops if op not in of_levels]:
            if len(op.outputs) != 1 or op.output.type != "FLOAT32" or find_sign(graph, op.output) is not None:
                continue
            sign = find_sign(graph, op.output, assume_nonzero=True)
            if sign is None or sign.x.dims != op.output.dims or is_never_negative(graph, sign.x):
                continue
            notes.warn(op, f"taken for 1 where its input is {sign.level[0]:g} (assume_nonzero)")
            _write(graph, op, sign)


def _ops_of_levels(graph: Graph) -> set[Op]:
    """The ops between a tensor of few levels and the tensor that they are computed from."""
    found: set[Op] = set()
    for op in graph.ops:
        levels = find_levels(graph, op.output) if len(op.outputs) == 1 else None
        waiting = [] if levels is None else [op]
        while waiting and levels is not None:
            found.add(one := waiting.pop())
            behind = (graph.producer(tensor) for tensor in one.inputs if tensor is not levels.x)
            waiting.extend(each for each in behind if each is not None and each not in found)
    return found


def _write(graph: Graph, op: Op, sign: Sign) -> None:
    """Makes `op` compute 1 where the comparison holds, else -1."""
    name = op.output.name
    condition = like(op.output, derived(name, "/condition"), type="BOOL")
    level = constant(derived(name, "/threshold"), sign.level[0])
    x = as_float(graph, sign.x, before=op)
    compared = builtin_op("LESS_EQUAL" if sign.falls else "GREATER_EQUAL", [x, level], condition)
    graph.insert(compared, before=op)
    one, minus = (constant(derived(name, f"/{value}"), np.asarray(value, np.float32)) for value in (1, -1))
    graph.replace(op, builtin_op("SELECT_V2", [condition, one, minus], op.output))
