"""An ADD of a concatenation of channels and a tensor padded with zero channels becomes an ADD of the parts that are not
padded.

The padded channels add zero. If a value is -0, adding zero makes it +0. Without the ADD it stays -0, which has no
effect on results.
"""

from __future__ import annotations

import numpy as np

from litebnn.analysis.match import fused_activation
from litebnn.analysis.padding import PADS, constant_padding
from litebnn.graph import Graph, Op, Tensor, builtin_op, derived, like
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import concatenation_of, parts_of


@each("ADD")
def add_before_concatenation(graph: Graph, op: Op, notes: Notes) -> bool:
    if fused_activation(op) != 0:
        return False
    for whole, padded in (op.inputs, op.inputs[::-1]):
        if whole is None or padded is None or whole.dims != padded.dims:
            continue
        parts, addend = parts_of(graph, whole), _padded(graph, padded)
        if addend is None:
            continue
        tensor, first_channel = addend
        firsts = np.cumsum([0, *(part.channels for part in parts)])
        places = [i for i, part in enumerate(parts) if firsts[i] == first_channel and part.dims == tensor.dims]
        if places:
            [place] = places
            total = like(tensor, derived(op.output.name, "/part"))
            graph.insert(builtin_op("ADD", [parts[place], tensor], total), before=op)
            parts[place] = total
            graph.replace(op, concatenation_of(parts, op.output))
            return True
    return False


def _padded(graph: Graph, tensor: Tensor) -> tuple[Tensor, int] | None:
    """Returns the tensor to which a PAD adds channels of zeros, and the number of zero channels before it."""
    pad = graph.producer(tensor, *PADS)
    padding = constant_padding(pad) if pad is not None and tensor.type == "FLOAT32" else None
    if pad is None or padding is None or padding.value != 0.0 or np.any(padding.amounts[:-1]):
        return None
    return pad.input(0), int(padding.amounts[-1, 0])
