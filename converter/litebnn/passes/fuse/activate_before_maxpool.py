"""A clamp behind the max pooling of an LceBconv2d goes in front of it, where the op can fuse it: both are monotone."""

from __future__ import annotations

from litebnn.contract import Activation
from litebnn.graph import Graph, Op, facts
from litebnn.rewriting.bconv import bconv_options, channel_values, dot_max, is_float_bconv
from litebnn.rewriting.build import derived, split_activation
from litebnn.rewriting.clamp import clamp_as_fused
from litebnn.rewriting.match import fused_activation
from litebnn.rewriting.notes import Notes


def activate_before_maxpool(graph: Graph, notes: Notes) -> bool:
    changed = False
    for pool in list(graph.ops):
        source = graph.producer(pool.input(0)) if pool.name == "MAX_POOL_2D" else None
        if source is None or not is_float_bconv(source) or graph.sole_consumer(pool.input(0)) is not pool:
            continue
        fused = fused_activation(pool)
        if fused and _can_fuse(source, fused):
            split_activation(graph, pool)
        follower = graph.sole_consumer(pool.output)
        clamp = None if follower is None else facts(follower).clamp
        if follower is not None and clamp is not None and _can_fuse(source, clamp):
            _swap(graph, pool, follower)
            changed = True
    return changed


def _can_fuse(source: Op, activation: Activation) -> bool:
    values = channel_values(source, 2, 1.0), channel_values(source, 3, 0.0)
    before = Activation(bconv_options(source).fused_activation_function)
    return clamp_as_fused(*values, dot_max(source), before, activation) is not None


def _swap(graph: Graph, pool: Op, follower: Op) -> None:
    """pool → follower becomes follower → pool."""
    unpooled, pooled, result = pool.input(0), pool.output, follower.output
    graph.remove(follower)
    graph.remove(pool)
    # The tensor between the two has the pooled size no more.
    pooled.name = derived(pooled.name, "/unpooled")
    pooled.shape, pooled.shape_signature = unpooled.shape, unpooled.shape_signature
    follower.inputs, follower.outputs = [unpooled], [pooled]
    pool.inputs, pool.outputs = [pooled], [result]
    position = next((op for op in graph.ops if result in op.inputs), None)
    graph.insert(follower, before=position)
    graph.insert(pool, before=position)
