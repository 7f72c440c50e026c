"""A sign in any form becomes an op that packs it, followed by an LceDequantize. The op is an LceQuantize, or a
THRESHOLD, the converter's own op for signs.
"""

from __future__ import annotations

import numpy as np

from litebnn.analysis.constants import constants_upstream
from litebnn.analysis.match import bits_of, times_repeated
from litebnn.analysis.quantization import below_level
from litebnn.analysis.signs import Sign, find_sign
from litebnn.analysis.thresholds import Threshold
from litebnn.contract import LCE_DEQUANTIZE
from litebnn.graph import Graph, Op, Tensor, builtin_op, constant, derived, like
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import as_float, custom_op
from litebnn.rules.build.signs import holds_signs, pack_signs


@each()
def recognize_signs(graph: Graph, op: Op, notes: Notes) -> bool:
    if len(op.outputs) != 1 or op.output.type != "FLOAT32":
        return False
    sign = find_sign(graph, op.output)
    if sign is None or op.output.channels < 1 or constants_upstream(graph, sign.x) is not None:
        return False
    is_alike = (sign.x.type, sign.x.dims) == (op.output.type, op.output.dims)
    # If all elements of the source are 1 or -1, its sign is the source itself, unless the threshold is outside of (-1,
    # 1].
    is_same = not sign.falls and bool(np.all((sign.level > -1) & (sign.level <= 1)))
    if (bits := bits_of(graph, sign.x)) is not None and is_same:
        graph.replace(op, custom_op(LCE_DEQUANTIZE, [bits], op.output))
        if is_alike:  # the ops that read either tensor then read the same one
            graph.redirect(op.output, sign.x)
        return True
    if is_alike and is_same and not graph.is_output(op.output) and holds_signs(graph, sign.x):
        graph.redirect(op.output, sign.x)
        return True
    # Unlike SELECT_V2, the older op SELECT treats a condition that is a vector as a selection of rows.
    multiples = times_repeated(sign.x.dims, op.output.dims)
    if multiples is None or (op.name != "SELECT_V2" and any(times != 1 for times in multiples)):
        return False
    bits = _tiled_bits(graph, *_operand(graph, sign, op), multiples, op)
    graph.replace(op, custom_op(LCE_DEQUANTIZE, [bits], op.output))
    return True


def _tiled_bits(graph: Graph, operand: Tensor, threshold: Threshold, multiples: list[int], op: Op) -> Tensor:
    """Returns the packed form of the op's output. If the operand is broadcast, its channels are repeated before
    packing, its other axes after packing.
    """
    *positions, channels = multiples
    name = op.output.name
    if channels != 1:
        operand = _tile(graph, operand, [*np.ones_like(positions), channels], derived(name, "/channels"), before=op)
    is_whole = np.all(np.equal(positions, 1))
    bits = pack_signs(graph, operand, derived(name, "/bits" if is_whole else "/condition"), threshold, before=op)
    return bits if is_whole else _tile(graph, bits, [*positions, 1], derived(name, "/bits"), before=op)


def _tile(graph: Graph, source: Tensor, multiples: list[int], name: str, *, before: Op) -> Tensor:
    tiled = like(source, name, dims=np.multiply(source.dims, multiples).tolist())
    times = constant(derived(name, "/multiples"), np.asarray(multiples, np.int32))
    return graph.insert(builtin_op("TILE", [source, times], tiled), before=before).output


def _operand(graph: Graph, sign: Sign, before: Op) -> tuple[Tensor, Threshold]:
    """Returns the float, int8 or boolean tensor whose sign is packed, and the threshold for it."""
    x, name = sign.x, before.output.name
    if x.type == "BOOL":
        inverse = builtin_op("LOGICAL_NOT", [x], like(x, derived(name, "/not")))
        return graph.insert(inverse, before=before).output if sign.falls else x, Threshold()
    names = derived(name, "/difference"), derived(name, "/threshold")
    threshold = Threshold(below_level(sign.level, x), np.full(1, sign.falls), *names, subtracts=True)
    is_read = x.type == "INT8" and threshold.is_plain  # LceQuantize reads int8 directly
    return x if is_read else as_float(graph, x, before=before), threshold
