"""A sign of a concatenation of channels -> a concatenation of the bits of its parts.

Bits are 32 times smaller than floats. The rewrite requires that all consumers can read the parts, so that the float
concatenation is not needed.
"""

from __future__ import annotations

from litebnn.analysis.match import SIGNS
from litebnn.analysis.thresholds import threshold_of
from litebnn.build.each import each
from litebnn.build.notes import Notes
from litebnn.build.ops import concatenation_of, packed_like, parts_of
from litebnn.build.thresholds import sign_op
from litebnn.contract import BITS_PER_WORD
from litebnn.graph import Graph, Op, derived

# The charge for each new op, in elements, because a damaged file may have any number of signs of parts.
_WORK_OF_AN_OP = 1 << 12


@each(*SIGNS)
def sign_before_concatenation(graph: Graph, sign: Op, notes: Notes) -> bool:
    joined, threshold = sign.input(0), threshold_of(sign)
    parts = parts_of(graph, joined)
    if threshold is None or len(parts) < 2 or any(part.channels % BITS_PER_WORD for part in parts[:-1]):
        return False
    if graph.is_output(joined) or not all(_takes_parts(graph, op) for op in graph.consumers(joined)):
        return False
    graph.spend(_WORK_OF_AN_OP * len(parts))
    bits, first = [], 0
    for i, part in enumerate(parts):
        own, name = slice(first, first + part.channels), f"/part{i}"
        bits.append(packed_like(part, derived(sign.output.name, name)))
        of_part = threshold.of_channels(own, name)
        graph.insert(sign_op(part, bits[-1], of_part), before=sign)
        first = own.stop
    graph.replace(sign, concatenation_of(bits, sign.output))
    return True


def _takes_parts(graph: Graph, op: Op) -> bool:
    """True if a consumer of a concatenation is a sign, or a concatenation or addition that rules divide."""
    return bool(parts_of(graph, op.output)) if op.name == "CONCATENATION" else op.name in SIGNS
