"""A PReLU with positive slopes in front of an affine and a sign -> another affine: what keeps the order of numbers only
moves the threshold.

p(x) · m + b turns where p(x) is t = -b / m, that is where x is t, or t / slope for a t below zero.
"""

from __future__ import annotations

import numpy as np

from litebnn.contract import LCE_QUANTIZE
from litebnn.graph import Graph, Op, builtin_op, constant
from litebnn.rewriting.affine import affine_chain, per_channel
from litebnn.rewriting.build import derived, like
from litebnn.rewriting.each import each
from litebnn.rewriting.notes import Notes


@each(LCE_QUANTIZE)
def prelu_before_sign(graph: Graph, sign: Op, notes: Notes) -> bool:
    chain = affine_chain(graph, sign.input(0))
    prelu = graph.producer(chain.source)
    if prelu is None or prelu.name != "PRELU" or not chain.ops or graph.sole_consumer(prelu.output) is None:
        return False
    x = prelu.input(0)
    slopes = per_channel(prelu.input(1), x.channels)
    if slopes is None or np.any(slopes <= 0) or x.dims != prelu.output.dims or x.type != "FLOAT32":
        return False
    if np.any(chain.is_strict_at(chain.shift)):
        return False
    with np.errstate(all="ignore"):
        level = -chain.shift / chain.scale
        level = np.where(level < 0, level / slopes, level)
        scale, shift = np.sign(chain.scale).astype(np.float32), (-level * np.sign(chain.scale)).astype(np.float32)
    if not np.all(np.isfinite(shift)) or np.any(scale == 0):
        return False
    name = sign.input(0).name
    scaled, shifted = (like(x, derived(name, suffix)) for suffix in ("/direction", "/threshold"))
    factors, addends = constant(derived(scaled.name, "/scale"), scale), constant(derived(shifted.name, "/shift"), shift)
    graph.insert(builtin_op("MUL", [x, factors], scaled), before=sign)
    graph.insert(builtin_op("ADD", [scaled, addends], shifted), before=sign)
    graph.set_input(sign, 0, shifted)
    for op in (*chain.ops, prelu):
        graph.remove(op)
    return True
