"""A sign, however it is written -> LceQuantize, LceDequantize."""

from __future__ import annotations

import numpy as np

from litebnn.contract import LCE_DEQUANTIZE
from litebnn.graph import Graph, Op, Tensor, builtin_op, constant
from litebnn.rewriting.affine import LEAST
from litebnn.rewriting.build import as_float, custom_op, derived, like, pack_signs
from litebnn.rewriting.constants import constants_behind
from litebnn.rewriting.each import each
from litebnn.rewriting.match import bits_of, times_repeated
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.signs import Sign, find_sign, holds_signs


@each()
def recognize_signs(graph: Graph, op: Op, notes: Notes) -> bool:
    if len(op.outputs) != 1 or op.output.type != "FLOAT32":
        return False
    sign = find_sign(graph, op.output)
    if sign is None or op.output.channels < 1 or constants_behind(graph, sign.x) is not None:
        return False
    is_alike = (sign.x.type, sign.x.dims) == (op.output.type, op.output.dims)
    if (bits := bits_of(graph, sign.x)) is not None and _is_same_sign(sign):
        graph.replace(op, custom_op(LCE_DEQUANTIZE, [bits], op.output))
        if is_alike:  # functions of both are ones of one tensor
            graph.redirect(op.output, sign.x)
        return True
    if is_alike and _is_same_sign(sign) and not graph.is_output(op.output) and holds_signs(graph, sign.x):
        graph.redirect(op.output, sign.x)
        return True
    # SELECT, which is older than SELECT_V2, has a rule of its own for conditions of another shape.
    multiples = times_repeated(sign.x.dims, op.output.dims)
    if multiples is None or (op.name != "SELECT_V2" and any(times != 1 for times in multiples)):
        return False
    bits = _tiled_bits(graph, _operand(graph, sign, op), multiples, op)
    graph.replace(op, custom_op(LCE_DEQUANTIZE, [bits], op.output))
    return True


def _is_same_sign(sign: Sign) -> bool:
    """Whether the sign of ±1 is that number itself; beyond -1 and 1, a threshold of a channel makes it a constant."""
    if sign.comparison not in ("GREATER_EQUAL", "GREATER"):
        return False
    compare = np.greater_equal if sign.comparison == "GREATER_EQUAL" else np.greater
    return bool(np.all(compare(1, sign.threshold) & ~compare(-1, sign.threshold)))


def _tiled_bits(graph: Graph, operand: Tensor, multiples: list[int], op: Op) -> Tensor:
    """The bits of what `op` computes: the operand's channels repeated, packed, and then the other axes repeated."""
    *positions, channels = multiples
    name = op.output.name
    if channels != 1:
        operand = _tile(graph, operand, [*np.ones_like(positions), channels], derived(name, "/channels"), before=op)
    if np.all(np.equal(positions, 1)):
        return pack_signs(graph, operand, derived(name, "/bits"), before=op)
    bits = pack_signs(graph, operand, derived(name, "/condition"), before=op)
    return _tile(graph, bits, [*positions, 1], derived(name, "/bits"), before=op)


def _tile(graph: Graph, source: Tensor, multiples: list[int], name: str, *, before: Op) -> Tensor:
    dims = np.multiply(source.dims, multiples).tolist()
    tiled = like(source, name, dims=dims)
    times = constant(derived(name, "/multiples"), np.asarray(multiples, np.int32))
    graph.insert(builtin_op("TILE", [source, times], tiled), before=before)
    return tiled


def _operand(graph: Graph, sign: Sign, before: Op) -> Tensor:
    """The tensor whose `LceQuantize` is the sign: x or a difference, or the boolean itself."""
    name = before.output.name
    if sign.comparison is None:
        if sign.truth:
            return sign.x
        inverse = like(sign.x, derived(name, "/not"))
        graph.insert(builtin_op("LOGICAL_NOT", [sign.x], inverse), before=before)
        return inverse
    rising = sign.comparison in ("GREATER_EQUAL", "GREATER")
    x, threshold, is_strict = sign.x, np.asarray(sign.threshold, np.float32), sign.comparison in ("GREATER", "LESS")
    if rising and not np.any(threshold) and not is_strict:  # LceQuantize reads int8 as it is
        return x if x.type == "INT8" else as_float(graph, x, before=before)
    if x.type != "FLOAT32":  # half a step below the threshold there is no number of the grid
        step, _ = x.per_tensor_quantization or (1.0, 0)
        x, threshold, is_strict = as_float(graph, x, before=before), np.asarray(threshold - step / 2, np.float32), False
    if not rising or np.any(threshold != 0):
        difference = like(x, derived(name, "/difference"))
        level = constant(derived(name, "/threshold"), threshold)
        graph.insert(builtin_op("SUB", (x, level) if rising else (level, x), difference), before=before)
        x = difference
    if is_strict:
        above = like(x, derived(name, "/above"))
        least = constant(derived(name, "/least"), np.asarray(LEAST, np.float32))
        graph.insert(builtin_op("SUB", [x, least], above), before=before)
        x = above
    return x
