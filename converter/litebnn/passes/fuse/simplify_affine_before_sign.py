"""A per-channel affine in front of a sign -> one addition: sign(x · m + b) is ±sign(x + b / m).

Channels with a negative scale are negated in the filters that read the bits, where these allow it.
"""

from __future__ import annotations

import numpy as np

from litebnn.contract import LCE_QUANTIZE
from litebnn.graph import Graph, Op, Tensor, builtin_op, constant, facts
from litebnn.rewriting.affine import affine_chain, next_level, normal_level
from litebnn.rewriting.bconv import INTERLEAVING, is_float_bconv, is_of_binary_convs
from litebnn.rewriting.build import derived, like
from litebnn.rewriting.each import each
from litebnn.rewriting.negated_channels import can_negate_channels, negate_channels
from litebnn.rewriting.notes import Notes


def _is_to_be_fused(graph: Graph, tensor: Tensor) -> bool:
    """Whether an LceBconv2d computes `tensor`, perhaps behind what other ops move in front of.

    It takes the affine ops up one by one. A level next to a number would be lost in the sum with its bias.
    """
    op = graph.producer(tensor)
    while op is not None and facts(op).reshapes and graph.sole_consumer(tensor) is not None:
        if op.input(0).channels != tensor.channels:
            return False
        tensor = op.input(0)
        op = graph.producer(tensor)
    direct = is_float_bconv(op) or (op is not None and op.name in INTERLEAVING)
    return direct and is_of_binary_convs(graph, tensor)


@each(LCE_QUANTIZE)
def simplify_affine_before_sign(graph: Graph, sign: Op, notes: Notes) -> bool:
    chain = affine_chain(graph, sign.input(0))
    already_simple = len(chain.ops) == 1 and np.all(chain.scale == 1) and (chain.strict or np.any(chain.shift != 0))
    if not chain.ops or already_simple or _is_to_be_fused(graph, chain.source):
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
    level = np.where(negative != chain.strict, lower, normal_level(level, up=False))
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
