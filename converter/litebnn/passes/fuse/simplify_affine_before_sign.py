"""A per-channel affine in front of a sign -> one addition: sign(x · m + b) is ±sign(x + b / m).

Channels with a negative scale are negated in the filters that read the bits, where these allow it.
"""

from __future__ import annotations

import numpy as np

from litebnn.contract import LCE_QUANTIZE
from litebnn.graph import Graph, Op, builtin_op, constant
from litebnn.rewriting.affine import affine_chain, next_level, normal_level
from litebnn.rewriting.bconv import takes_affine
from litebnn.rewriting.build import derived, like
from litebnn.rewriting.each import each
from litebnn.rewriting.negated_channels import can_negate_channels, negate_channels
from litebnn.rewriting.notes import Notes


@each(LCE_QUANTIZE)
def simplify_affine_before_sign(graph: Graph, sign: Op, notes: Notes) -> bool:
    chain = affine_chain(graph, sign.input(0))
    already_simple = len(chain.ops) == 1 and np.all(chain.scale == 1) and (chain.strict or np.any(chain.shift != 0))
    if not chain.ops or already_simple or takes_affine(graph, chain.source):
        return False
    negative = chain.scale < 0
    if (
        not np.all(np.isfinite(chain.scale))
        or np.any(chain.scale == 0)
        or (np.any(negative) and not can_negate_channels(graph, sign.output))
    ):
        return False
    with np.errstate(over="ignore"):
        level = (chain.shift / chain.scale).astype(np.float32)
    if not np.all(np.isfinite(level)):
        return False
    # Strict for one sign of the scale is not strict for the other, for the negated channel is +1 where this one is -1.
    lower = next_level(level, up=False)
    level = np.where(negative != chain.is_strict_at(chain.shift), lower, normal_level(level, up=False))
    if np.any(negative):
        negate_channels(graph, sign.output, negative)
    source = chain.source
    if np.any(level != 0):
        shifted = like(source, derived(sign.input(0).name, "/shifted"))
        addend = constant(derived(shifted.name, "/threshold"), level)
        graph.insert(builtin_op("ADD", [source, addend], shifted), before=sign)
        source = shifted
    graph.set_input(sign, 0, source)
    for op in chain.ops:
        graph.remove(op)
    return True
