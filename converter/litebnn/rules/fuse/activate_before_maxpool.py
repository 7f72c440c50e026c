"""A clamp after the max pooling of an LceBconv2d moves before the pooling, where the LceBconv2d can fuse the clamp.
Clamp and pooling are monotone."""

from __future__ import annotations

from litebnn.analysis.match import fused_activation
from litebnn.build.bconv import is_float_bconv, with_clamp
from litebnn.build.notes import Notes, each
from litebnn.build.ops import split_activation
from litebnn.graph import Graph, Op, derived, facts


@each("MAX_POOL_2D", lowers="distance of max pools from outputs")
def activate_before_maxpool(graph: Graph, pool: Op, notes: Notes) -> bool:
    source = graph.producer(pool.input(0))
    if source is None or not is_float_bconv(source) or graph.sole_consumer(pool.input(0)) is not pool:
        return False
    fused = fused_activation(pool)
    if fused and with_clamp(source, fused) is not None:
        split_activation(graph, pool)
    follower = graph.sole_consumer(pool.output)
    clamp = None if follower is None else facts(follower).clamp
    if follower is None or clamp is None or with_clamp(source, clamp) is None:
        return False
    _swap(graph, pool, follower)
    return True


def _swap(graph: Graph, pool: Op, follower: Op) -> None:
    """Swaps a pool and the clamp that follows it."""
    unpooled, pooled, result = pool.input(0), pool.output, follower.output
    graph.remove(follower)
    graph.remove(pool)
    # The tensor between the pool and the clamp is now before the pool, so its declared size changes.
    pooled.name, pooled.origin = derived(pooled.name, "/unpooled"), None
    pooled.shape, pooled.shape_signature = unpooled.shape, unpooled.shape_signature
    follower.inputs, follower.outputs = [unpooled], [pooled]
    pool.inputs, pool.outputs = [pooled], [result]
    position = next((op for op in graph.ops if result in op.inputs), None)
    graph.insert(follower, before=position)
    graph.insert(pool, before=position)
