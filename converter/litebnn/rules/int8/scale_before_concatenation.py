"""A MUL of a concatenation by constants becomes a MUL of each part, if all of them are to be int8. Pools between the
CONCATENATION and the MUL become pools of each part.

An int8 tensor has one scale for all channels. The parts that dense blocks concatenate have different ranges, which a
batch norm then makes alike. With the scale of the widest part, the other parts would keep few levels, and so would
their constants. After the rule, each part has its own scale, and each MUL writes with the scale of the whole result.
"""

from __future__ import annotations

import copy

import numpy as np

from litebnn.analysis.affine import per_channel
from litebnn.analysis.match import fused_activation
from litebnn.graph import Graph, Op, Tensor, derived, like
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import concatenation_of, on_channels, parts_of, spend_on_ops


@each("MUL")
def scale_before_concatenation(graph: Graph, op: Op, notes: Notes) -> bool:
    ranges = notes.ranges
    limits = ranges.get(op.output, (0.0, 0.0))
    if limits[0] == limits[1] or len(op.inputs) != 2 or fused_activation(op) != 0:
        return False
    for tensor, constants in (op.inputs, op.inputs[::-1]):
        if tensor is None or tensor.dims != op.output.dims:
            continue
        whole, pools = _before_pools(graph, tensor)
        parts = parts_of(graph, whole)
        if len(parts) < 2 or whole.channels != tensor.channels or per_channel(constants, tensor.channels) is None:
            continue
        if any(part not in ranges for part in parts):
            continue
        spend_on_ops(graph, (len(pools) + 1) * (len(parts) - 1))
        products, end = [], 0
        for part in parts:
            begin, end = end, end + part.channels
            pooled = _pooled(graph, pools, part, before=op)
            name = derived(op.output.name, "/part")
            products.append(on_channels(graph, op, tensor, pooled, np.arange(begin, end), name, before=op))
            # Runtimes require the scale of the output for all parts.
            ranges[products[-1]] = limits
        graph.replace(op, concatenation_of(products, op.output))
        return True
    return False


def _before_pools(graph: Graph, tensor: Tensor) -> tuple[Tensor, list[Op]]:
    """Returns the tensor from which pools alone compute `tensor`, and these pools in order of execution."""
    pools: list[Op] = []
    while True:
        pool = graph.producer(tensor, "MAX_POOL_2D", "AVERAGE_POOL_2D")
        if pool is None or graph.sole_consumer(tensor) is None:
            return tensor, pools[::-1]
        pools.append(pool)
        tensor = pool.input(0)


def _pooled(graph: Graph, pools: list[Op], part: Tensor, *, before: Op) -> Tensor:
    """Applies the pools of a concatenation to one of its parts."""
    for pool in pools:
        result = like(part, derived(pool.output.name, "/part"), dims=(*pool.output.dims[:-1], part.channels))
        part = graph.insert(Op(pool.code, [part], [result], copy.copy(pool.options)), before=before).output
    return part
