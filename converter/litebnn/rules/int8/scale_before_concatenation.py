"""A MUL of a concatenation by constants becomes a MUL of each part, if the result is to be int8. Pools between both
become pools of each part.

An int8 tensor has one scale for all channels. The parts that dense blocks concatenate have different ranges, which a
batch norm then makes alike. With the scale of the widest part, the other parts would keep few levels, and so would
their constants. After the rule, each part has its own scale, and each MUL writes with the scale of the whole result.
"""

from __future__ import annotations

import copy

import numpy as np

from litebnn.analysis.affine import per_channel
from litebnn.analysis.match import fused_activation
from litebnn.build.notes import Notes, each
from litebnn.build.ops import concatenation_of, parts_of
from litebnn.graph import Graph, Op, Tensor, builtin_op, constant, derived, like


@each("MUL", lowers="elements of concatenations that are scaled")
def scale_before_concatenation(graph: Graph, op: Op, notes: Notes) -> bool:
    limits = notes.request.ranges.get(op.output)
    if limits is None or len(op.inputs) != 2 or fused_activation(op) != 0:
        return False
    for image, constants in (op.inputs, op.inputs[::-1]):
        if image is None or image.dims != op.output.dims:
            continue
        whole, pools = _before_pools(graph, image)
        parts, factors = parts_of(graph, whole), per_channel(constants, image.channels)
        if len(parts) < 2 or factors is None or whole.channels != image.channels:
            continue
        products = []
        firsts = np.cumsum([part.channels for part in parts])[:-1]
        for part, own in zip(parts, np.split(factors, firsts), strict=True):
            for pool in pools:
                part = _pooled(graph, pool, part, before=op)
            products.append(like(part, derived(op.output.name, "/part")))
            # All parts of an int8 concatenation have its scale.
            notes.request.ranges[products[-1]] = limits
            factor = constant(derived(op.output.name, "/part/factors"), own)
            graph.insert(builtin_op("MUL", [part, factor], products[-1]), before=op)
        graph.replace(op, concatenation_of(products, op.output))
        return True
    return False


def _before_pools(graph: Graph, image: Tensor) -> tuple[Tensor, list[Op]]:
    """Returns the tensor from which pools alone compute `image`, and these pools in order of execution."""
    pools: list[Op] = []
    while True:
        pool = graph.producer(image, "MAX_POOL_2D", "AVERAGE_POOL_2D")
        if pool is None or graph.sole_consumer(image) is None:
            return image, pools[::-1]
        pools.append(pool)
        image = pool.input(0)


def _pooled(graph: Graph, pool: Op, part: Tensor, *, before: Op) -> Tensor:
    """Pools a part of a pool's input."""
    result = like(part, derived(pool.output.name, "/part"), dims=(*pool.output.dims[:-1], part.channels))
    return graph.insert(Op(pool.code, [part], [result], copy.copy(pool.options)), before=before).output
