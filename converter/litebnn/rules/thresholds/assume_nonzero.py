"""Some functions are a sign except at a single number: SIGN, for example, gives 0 at 0. On request, such a function
becomes a sign that is +1 at this number.

Zeros that pad the function's input are there for certain. The function's values for them pad the sign instead.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Literal

import numpy as np

from litebnn.analysis.constants import ELEMENTWISE, ON_ELEMENTS
from litebnn.analysis.few_values import find_levels, single_numbers
from litebnn.analysis.match import first_computed, floats, fused_activation
from litebnn.analysis.numbers.zeros import OF_SIGNS, Reasons, zeros_of
from litebnn.analysis.padding import PADS, constant_padding
from litebnn.analysis.signs import Sign, find_sign, find_two_values
from litebnn.analysis.values import values_of
from litebnn.analysis.walks import MOST_OPS, ops_upstream
from litebnn.contract import ACTIVATION_RANGES, Activation
from litebnn.graph import Array, Graph, Op, Tensor, derived, like
from litebnn.rules.build.notes import Notes
from litebnn.rules.build.ops import compared, select_op
from litebnn.rules.build.signs import pad_with

_Pads = list[tuple[Array, float]]  # amounts int [rank, 2] and values, the innermost last
# The suffix of the name of a sign whose input was padded, before its padding.
UNPADDED = "/unpadded"


def assume_nonzero(graph: Graph, notes: Notes) -> bool:
    """Replaces a SIGN, or another function with a third value at a single number, by a sign. The report names the
    functions that were replaced.

    A SIGN after a ReLU takes only 0 and 1, and stays. A function with a third level between two thresholds, such as a
    ternary quantizer, stays too. A SIGN of numbers that are often 0 stays, because layers read it as two signs. Layers
    with groups cannot do that.
    """
    of_levels = _ops_of_levels(graph)
    if _move_padding(graph, of_levels, notes):
        return True
    changed = False
    for op in list(graph.ops):
        if op not in of_levels or _is_read_in_groups(graph, op):
            changed |= _replace(graph, op, notes)
        elif _sign(graph, op) and (levels := find_levels(graph, op.output)) and single_numbers(levels).size:
            assert levels.x is not None
            _keep(op, zeros_of(graph, levels.x), notes)
    return changed


def _keep(op: Op, reasons: Reasons, notes: Notes) -> Literal[False]:
    why = " and ".join(sorted(reasons))
    notes.warn(op, f"not taken for 1 where its input is 0 (assume_nonzero), which is likely: {why}")
    return False


def _sign(graph: Graph, op: Op) -> Sign | None:
    """Returns the sign that an op computes except at a single number; None for other ops, such as a SIGN of numbers
    that are never negative, which has two values.
    """
    if len(op.outputs) != 1 or op.output.type != "FLOAT32" or find_sign(graph, op.output) is not None:
        return None
    sign = find_sign(graph, op.output, assume_nonzero=True)
    if sign is None or sign.x.dims != op.output.dims or find_two_values(graph, op.output) is not None:
        return None
    return sign


def _move_padding(graph: Graph, of_levels: set[Op], notes: Notes) -> bool:
    """Moves the padding of inputs behind sign forms. A form may have several ops, of which the last one counts.

    A form in `of_levels` stays, because layers without groups read it as two signs.
    """
    replaced: set[Op] = set()
    for op in reversed(list(graph.ops)):
        is_kept = op in replaced or (op in of_levels and not _is_read_in_groups(graph, op))
        sign = None if is_kept else _sign(graph, op)
        if sign is not None and _before_padding(graph, op, sign)[2]:
            form = _ops_between(graph, sign.x, op.output)
            replaced |= form if _replace(graph, op, notes) else set()
    return bool(replaced)


def _replace(graph: Graph, op: Op, notes: Notes) -> bool:
    sign = _sign(graph, op)
    if sign is None:
        return False
    x, ops, pads = _before_padding(graph, op, sign)
    why, level = zeros_of(graph, x), float(sign.level[0])
    if why - {OF_SIGNS}:
        return _keep(op, why, notes)
    likely = f", which is likely: {OF_SIGNS}" if why else ""
    notes.warn(op, f"taken for 1 where its input is {level:g} (assume_nonzero){likely}")
    for before in ops:
        inputs = [x if each is first_computed(before) else each for each in before.inputs]
        order = _order(before)
        dims = x.dims if order is None else [x.dims[axis] for axis in order]
        moved = like(before.output, derived(before.output.name, UNPADDED), dims=dims)
        x = graph.insert(Op(before.code, inputs, [moved], copy.copy(before.options)), before=op).output
    output = op.output if not pads else like(op.output, derived(op.output.name, UNPADDED), dims=x.dims)
    condition = compared(graph, x, level, op.output.name, "LESS_EQUAL" if sign.falls else "GREATER_EQUAL", before=op)
    select = select_op(condition, 1.0, -1.0, output)
    if not pads:
        graph.replace(op, select)
        return True
    signs = graph.insert(select, before=op).output
    for amounts, value in reversed(pads):
        signs = pad_with(graph, signs, amounts, value, before=op)
    last = graph.producer(signs)
    assert last is not None
    graph.remove(op)
    graph.set_output(last, op.output)
    return True


def _before_padding(graph: Graph, form: Op, sign: Sign) -> tuple[Tensor, list[Op], _Pads]:
    """Finds the zeros that pad the input of a sign form upstream, and at which the form has its third value.

    Returns:
        The tensor before padding, the ops on elements and transposes that compute the form's input from it, and the
        padding of the form's output. If nothing is padded, the form's input and empty lists.
    """
    function, x, level = values_of(graph, form.output), sign.x, float(sign.level[0])
    found: tuple[Tensor, list[Op], _Pads] = x, [], []
    tensor, ops, pads = x, list[Op](), _Pads()
    while (op := graph.producer(tensor)) is not None and len(ops) + len(pads) < MOST_OPS and function.x is x:
        padding = constant_padding(op) if op.name in PADS else None
        if padding is None:
            if op.name in PADS or not (_is_on_elements(op) or _order(op) is not None):
                break
            source = first_computed(op)
            assert source is not None
            ops.insert(0, op)
            tensor = source
            continue
        numbers, amounts = _computed(ops, padding.value), _amounts_behind(ops, padding.amounts)
        if numbers is None or amounts is None:
            break
        values = np.unique(function.values[np.searchsorted(function.edges, numbers, side="right")])
        if len(values) != 1:
            break
        pads.append((amounts, float(values[0])))
        tensor = op.input(0)
        if np.all(numbers == level):
            found = tensor, list(ops), list(pads)
    return found


def _is_on_elements(op: Op) -> bool:
    """True if an op computes each element from the same element of one tensor, and from constants."""
    x = first_computed(op)
    if x is None or op.name not in ON_ELEMENTS or x.dims != op.output.dims or op.output.type != "FLOAT32":
        return False
    return fused_activation(op) is not None and all(each is x or floats(each) is not None for each in op.inputs)


def _order(op: Op) -> Array | None:
    """Returns the order int [rank] of the axes that a TRANSPOSE moves; None for other ops and computed orders."""
    return op.input(1).array if op.name == "TRANSPOSE" else None


def _amounts_behind(ops: list[Op], amounts: Array) -> Array | None:
    """Returns the amounts of padding in the layout behind `ops`. Returns None if an op has a constant with several
    values along an axis that is padded.
    """
    for op in ops:
        if (order := _order(op)) is not None:
            amounts = amounts[order]
        elif any(_varies(each, amounts) for each in op.inputs):
            return None
    return amounts


def _varies(tensor: Tensor | None, amounts: Array) -> bool:
    """True if a constant has several values along an axis that is padded."""
    sizes = () if tensor is None or not tensor.is_constant else tensor.shape
    return any(size > 1 and np.any(own) for size, own in zip(reversed(sizes), amounts[::-1], strict=False))


def _computed(ops: list[Op], number: float) -> Array | None:
    """Applies ops on elements to a number. Returns the results for all values of their constants; None if they are
    unknown.
    """
    values = np.full(1, number, np.float32)
    for op in (each for each in ops if _order(each) is None):
        x, limits = first_computed(op), ACTIVATION_RANGES[fused_activation(op) or Activation.NONE]
        if op.name in ELEMENTWISE:
            with np.errstate(all="ignore"):
                results = ELEMENTWISE[op.name](*(values if each is x else floats(each) for each in op.inputs))
                values = np.clip(results, *limits)
        elif np.any(values):  # the other ops keep zero
            return None
    return values


def _is_read_in_groups(graph: Graph, op: Op) -> bool:
    """True if a convolution with groups reads the output of an op, perhaps after padding and transposes."""
    read = list(op.outputs)
    for tensor in read:
        for reader in graph.consumers(tensor):
            if reader.name == "CONV_2D" and 0 < reader.input(1).channels < reader.input(0).channels:
                return True
            if reader.name in (*PADS, "TRANSPOSE"):
                read.append(reader.output)
    return False


def _ops_of_levels(graph: Graph) -> set[Op]:
    """Returns the ops between a tensor of few levels and the tensor from which the levels are computed."""
    found: set[Op] = set()
    for op in graph.ops:
        levels = find_levels(graph, op.output) if len(op.outputs) == 1 else None
        if levels is not None:
            found |= _ops_between(graph, levels.x, op.output)
    return found


def _ops_between(graph: Graph, source: Tensor | None, tensor: Tensor) -> set[Op]:
    """Returns the ops through which `tensor` is computed from `source`."""
    reached, between = {source}, set[Op]()
    for op in ops_upstream(graph, tensor, partial(_inputs_except, source), len(graph.ops)) or ():
        if source is not None and not reached.isdisjoint(op.inputs):
            between.add(op)
            reached.update(op.outputs)
    return between


def _inputs_except(source: Tensor | None, op: Op) -> list[Tensor | None]:
    return [tensor for tensor in op.inputs if tensor is not source]
