"""LceQuantize of a concatenation of channels -> a concatenation of the bits of its parts.

Bits are 32 times smaller than floats. It is done where all that reads the concatenation takes its parts as well, so
that it need not be made.
"""

from __future__ import annotations

import copy

from litebnn.contract import BITS_PER_WORD, LCE_QUANTIZE
from litebnn.graph import Graph, Op, Tensor, constant
from litebnn.rewriting.affine import affine_chain, ends_in_sign, per_channel
from litebnn.rewriting.build import derived, like, pack_signs
from litebnn.rewriting.concatenation import concatenation_of, parts_of
from litebnn.rewriting.each import each
from litebnn.rewriting.notes import Notes

# What an op counts for among the elements that rewrites may make: a damaged file may have any number of signs of parts.
_WORK_OF_AN_OP = 1 << 12


@each(LCE_QUANTIZE)
def sign_before_concatenation(graph: Graph, sign: Op, notes: Notes) -> bool:
    chain = affine_chain(graph, sign.input(0))
    parts = parts_of(graph, chain.source)
    if len(parts) < 2 or any(part.channels % BITS_PER_WORD for part in parts[:-1]):
        return False
    if graph.is_output(chain.source) or not all(_takes_parts(graph, op) for op in graph.consumers(chain.source)):
        return False
    graph.spend(_WORK_OF_AN_OP * len(parts) * (len(chain.ops) + 1))
    bits, first = [], 0
    for i, part in enumerate(parts):
        x, channels = part, slice(first, first + part.channels)
        for op in reversed(chain.ops):
            x = _of_channels(graph, op, x, channels, derived(op.output.name, f"/part{i}"), before=sign)
        bits.append(pack_signs(graph, x, derived(sign.output.name, f"/part{i}"), before=sign))
        first = channels.stop
    graph.replace(sign, concatenation_of(bits, sign.output))
    for op in chain.ops:
        graph.remove(op)
    return True


def _takes_parts(graph: Graph, op: Op) -> bool:
    """Whether what reads a concatenation is a sign, or another concatenation or addition that passes divide."""
    return bool(parts_of(graph, op.output)) if op.name == "CONCATENATION" else ends_in_sign(graph, op)


def _of_channels(graph: Graph, op: Op, x: Tensor, channels: slice, name: str, *, before: Op) -> Tensor:
    """The output of an affine op for some of its channels, whose input is `x`."""
    result = like(x, name)
    values = [per_channel(tensor, op.output.channels) for tensor in op.inputs]
    inputs: list[Tensor | None] = [
        x if each is None else constant(derived(name, "/constant"), each[channels]) for each in values
    ]
    graph.insert(Op(op.code, inputs, [result], copy.copy(op.options)), before=before)
    return result
