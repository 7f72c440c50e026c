"""An average pool moves before a batch norm whose result only the pool and signs read. The dense layer after the pool
then applies the batch norm to the averages.

The delegate fuses a batch norm into the packing of signs only if nothing else reads it. The gates of Real-to-Binary
networks average the result of the batch norm before each sign.
"""

from __future__ import annotations

import copy

import numpy as np

from litebnn.analysis.affine import affine_of
from litebnn.analysis.match import SIGNS, floats, fused_activation
from litebnn.analysis.weights import bias_values
from litebnn.build.notes import Notes, each
from litebnn.graph import Array, Graph, Op, Tensor, constant, derived, like


@each("AVERAGE_POOL_2D", "MEAN", lowers="distance of average pools from inputs")
def average_first(graph: Graph, pool: Op, notes: Notes) -> bool:
    image, dense = pool.input(0), graph.sole_consumer(pool.output)
    others = [reader for reader in graph.consumers(image) if reader is not pool]
    if graph.is_output(image) or not all(reader.name in SIGNS for reader in others) or not _averages_channels(pool):
        return False
    x, scale, shift = _before_norm(graph, image)
    if x is image or dense is None or not _apply_to_input(graph, dense, pool.output, scale, shift):
        return False
    averages = like(pool.output, derived(pool.output.name, "/unscaled"))
    graph.insert(Op(pool.code, [x, *pool.inputs[1:]], [averages], copy.copy(pool.options)), before=pool)
    graph.set_input(dense, 0, averages)
    graph.remove(pool)
    return True


def _averages_channels(pool: Op) -> bool:
    """True if each value of the pool's output is the average of values of its own channel."""
    image, output = pool.input(0), pool.output
    if fused_activation(pool) != 0 or image.type != "FLOAT32" or image.channels < 1:
        return False
    if pool.name == "AVERAGE_POOL_2D":
        return True
    axes, rank = pool.input(1).array, len(image.dims)
    return axes is not None and rank - 1 not in axes.reshape(-1) % rank and output.channels == image.channels


def _before_norm(graph: Graph, image: Tensor) -> tuple[Tensor, Array, Array]:
    """Follows the ops that compute `image` back through those with constants for each channel.

    Returns:
        the tensor before these ops, and the scale and the shift for each channel that they apply to it.
    """
    x, scale, shift = image, np.ones(image.channels), np.zeros(image.channels)
    op = graph.producer(image)
    while op is not None and fused_activation(op) == 0:
        left = op.inputs[0] is not None and not op.inputs[0].is_constant
        affine = affine_of(op, image.channels, left=left)
        source = op.inputs[0 if left else 1] if affine is not None else None
        if affine is None or source is None or source.dims != image.dims:
            break
        with np.errstate(all="ignore"):
            x, scale, shift = source, scale * affine[0], shift + scale * affine[1]
        op = graph.producer(x) if graph.sole_consumer(x) is op else None
    return x, scale, shift


def _apply_to_input(graph: Graph, dense: Op, rows: Tensor, scale: Array, shift: Array) -> bool:
    """Makes a dense layer apply a batch norm to its input, by changing its weights and bias. Returns False if the layer
    is not a float layer of constants whose input is `rows`."""
    if dense.name != "FULLY_CONNECTED" or dense.input(0) is not rows or dense.options.weights_format != 0:
        return False
    weights = floats(dense.input(1))
    if weights is None or weights.ndim != 2 or weights.shape[1] != scale.size:
        return False
    old = dense.optional(2)
    bias = bias_values(old, weights.shape[0])
    if bias is None:
        return False
    graph.spend(weights.size)
    with np.errstate(all="ignore"):
        scaled, total = (weights * scale).astype(np.float32), (bias + weights @ shift).astype(np.float32)
    if not (np.all(np.isfinite(scaled)) and np.all(np.isfinite(total))):
        return False
    name = dense.input(1).name
    graph.set_input(dense, 1, constant(derived(name, "/scaled"), scaled))
    bias_name = derived(name, "/bias") if old is None else derived(old.name, "/shifted")
    while len(dense.inputs) < 3:
        dense.inputs.append(None)
    graph.set_input(dense, 2, constant(bias_name, total))
    return True
