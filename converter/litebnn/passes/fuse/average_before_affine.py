"""AVERAGE_POOL_2D of a scaled or shifted image -> the same of what it pools, where nothing but signs read the image.

Real-to-Binary networks gate channels by the average of what they take signs of. Behind the pooling a batch norm is done
for few values, and in front of it for the signs alone, to which it is a threshold. The average is rounded elsewhere.
"""

from __future__ import annotations

import copy

from litebnn.graph import Graph, Op
from litebnn.rewriting.affine import affine_of, ends_in_sign
from litebnn.rewriting.build import derived, like
from litebnn.rewriting.each import each
from litebnn.rewriting.match import fused_activation
from litebnn.rewriting.notes import Notes


@each("AVERAGE_POOL_2D")
def average_before_affine(graph: Graph, pool: Op, notes: Notes) -> bool:
    image = pool.input(0)
    op, others = graph.producer(image), [reader for reader in graph.consumers(image) if reader is not pool]
    if op is None or fused_activation(pool) != 0 or graph.is_output(image) or not others:
        return False
    if not all(ends_in_sign(graph, reader) for reader in others):
        return False
    x, constants = op.inputs[0], op.inputs[1:]
    if x is None or x.dims != image.dims or fused_activation(op) != 0 or pool.output.channels != image.channels:
        return False
    if x.type != "FLOAT32" or affine_of(op, image.channels, left=True) is None:
        return False
    pooled = like(pool.output, derived(pool.output.name, "/pooled"))
    graph.insert(Op(pool.code, [x], [pooled], copy.copy(pool.options)), before=pool)
    graph.replace(pool, Op(op.code, [pooled, *constants], [pool.output], copy.copy(op.options)))
    return True
