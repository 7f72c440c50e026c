"""The threshold of a sign moves upstream, to where a layer absorbs it or where the tensor of signs is smaller.

For example, sign(tanh(x · m + b)) is ±sign(x + b / m). The layer that computes x can then absorb the threshold. A max
pool then works on packed signs, which are 32 times smaller than floats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from litebnn.analysis.affine import AFFINE, affine_of
from litebnn.analysis.match import SIGNS, first_computed, fused_activation
from litebnn.analysis.padding import constant_padding
from litebnn.analysis.quantization import first_rounded_to, next_of_grid, numbers_of_grid
from litebnn.analysis.thresholds import Threshold, crossing, encloses, threshold_of, upstream
from litebnn.analysis.walks import MOST_OPS
from litebnn.analysis.weights import bias_values
from litebnn.contract import ACTIVATION_RANGES, BITS_PER_WORD
from litebnn.graph import Array, Graph, Op, Tensor, constant, derived, facts, then
from litebnn.rules.build.bconv import can_pack, is_float_bconv, takes_affine
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import can_pool_bits, copy_of, packed_like, pool_of_bits, split_activation
from litebnn.rules.build.signs import can_negate_channels, negate_channels, pad_packed, sign_op

# The kinds of ops, besides arithmetic, before which this rule or `compute_before_moving` can move a threshold.
_FOLLOWED = ("CONCATENATION", "DEQUANTIZE", "MAX_POOL_2D")
_NEGATIVE = (
    "the signs behind its max pooling fall (negative scales, or 0 and 1 for ±1), and the next layer pads with ones: "
    "its output stays float"
)


@each(*SIGNS)
def move_thresholds(graph: Graph, sign: Op, notes: Notes) -> bool:
    threshold = threshold_of(sign)
    return threshold is not None and any(across(graph, sign, threshold, notes) for across in _ACROSS)


def _across_arithmetic(graph: Graph, sign: Op, found: Threshold, notes: Notes) -> bool:
    read = sign.input(0)
    producer = graph.producer(read)
    only_signs = not graph.is_output(read) and all(reader.name in SIGNS for reader in graph.consumers(read))
    clamp = fused_activation(producer) if producer is not None and read.type == "FLOAT32" else None
    if producer is not None and clamp and encloses(ACTIVATION_RANGES[clamp], found.level) and only_signs:
        return split_activation(graph, producer)
    ops, x, level, falls, is_rounded = _moved(graph, read, found.level)
    if takes_affine(graph, x):  # the layer fuses the affine ops
        first = next((i for i, op in enumerate(reversed(ops)) if op.name not in AFFINE), len(ops))
        ops, x, level, falls, is_rounded = _moved(graph, read, found.level, len(ops) - first)
    before = graph.producer(x)
    is_addition = found.is_plain and len(ops) == 1 and _adds(ops[0], x)
    # Moving a threshold before a single addition would achieve nothing, because a later rule would turn the moved
    # threshold into such an addition again.
    if not ops or (is_addition and (before is None or before.name not in _FOLLOWED)):
        return False
    name = next((op.output.name for op in ops if op.name in AFFINE), read.name)
    name = name if is_addition else derived(name, "/shifted")
    is_rounded |= found.is_rounded
    moved = Threshold(level, found.falls ^ falls, name, derived(name, "/threshold"), is_rounded=is_rounded)
    graph.replace(sign, sign_op(x, sign.output, moved))
    for op in ops:
        if not graph.is_read(op.output):
            graph.remove(op)
    return True


def _moved(graph: Graph, x: Tensor, level: Array, most: int = MOST_OPS) -> tuple[list[Op], Tensor, Array, Array, bool]:
    """Moves the threshold `level` for x upstream, past at most `most` ops. For each op, computes the threshold for its
    input.

    Returns:
        The ops, the tensor before them, and its thresholds, one for each channel or one for all. Then as many bools,
        which are true if the output of the ops falls when this tensor rises. Last, True if a threshold was rounded.
    """
    ops: list[Op] = []
    falls, is_rounded = np.zeros(1, np.bool_), False
    while len(ops) < most and (op := graph.producer(x)) is not None and op.inputs:
        source = first_computed(op)
        step = None if source is None else upstream(op, source, level)
        moves_level = op.name in AFFINE or bool(np.any(level))
        if source is None or step is None or (moves_level and graph.sole_consumer(x) is None):
            break
        level, falls, is_rounded = step[0], falls ^ step[1], is_rounded or not np.all(step[2])
        ops.append(op)
        x = source
    return ops, x, level, falls, is_rounded


def _adds(op: Op, x: Tensor) -> bool:
    affine = affine_of(op, x.channels, left=op.inputs[0] is x) if op.name in AFFINE else None
    return affine is not None and bool(np.all(affine[0] == 1) and np.any(affine[1]))


def _across_max_pool(graph: Graph, sign: Op, threshold: Threshold, notes: Notes) -> bool:
    """Moves a sign before a max pool, because the sign of a maximum is the maximum of signs. A binary layer before the
    pool absorbs the threshold. In channels whose sign falls (+1 below the threshold), the filters that read the bits
    are negated.
    """
    pool = graph.producer(sign.input(0), "MAX_POOL_2D")
    if pool is None or not can_pool_bits(pool) or graph.sole_consumer(pool.output) is None:
        return False
    pad = _padding_of(graph, pool)
    unpooled = pool.input(0) if pad is None else pad.input(0)
    source, bits = graph.producer(unpooled), packed_like(unpooled, derived(unpooled.name, "/signs"))
    if threshold.is_plain:
        bits.origin = then(unpooled, signs=unpooled.channels)
    elif source is None or graph.sole_consumer(unpooled) is None:
        return False
    elif is_float_bconv(source):
        if not can_pack(source, notes):
            return False
        if np.any(threshold.falls) and not can_negate_channels(graph, sign.output):
            return notes.left_alone(source, _NEGATIVE)
        notes.fused(source, "batch norm behind MAX_POOL_2D")
    elif source.name not in ("CONV_2D", "DEPTHWISE_CONV_2D"):
        return False
    elif threshold.is_rounded:  # otherwise, sums with another bias may round to another sign
        if not _shift_bias(graph, source, threshold):
            return False
        threshold = Threshold()
    elif np.any(threshold.falls) or np.any(np.isinf(threshold.level)):
        return False
    if np.any(threshold.falls):
        negate_channels(graph, sign.output, np.broadcast_to(threshold.falls, unpooled.channels))
        threshold = threshold.rising
    graph.insert(sign_op(unpooled, bits, threshold), before=sign)
    padding = None if pad is None else constant_padding(pad)
    if padding is not None:
        bits = pad_packed(graph, bits, unpooled.channels, padding.amounts, -1, before=sign)
    graph.replace(sign, pool_of_bits(pool, bits, sign.output))
    for op in (pool, *([pad] if pad else [])):
        graph.remove(op)
    return True


def _padding_of(graph: Graph, pool: Op) -> Op | None:
    """Returns the op that pads a pool's input with -inf, if there is one. If the pool works on bits, -inf becomes the
    padding -1.

    PyTorch's pools have explicit padding, which is seldom the same as SAME.
    """
    pad = graph.producer(pool.input(0), "PADV2")
    if pad is None or graph.sole_consumer(pad.output) is not pool:
        return None
    padding, channels = constant_padding(pad), pool.input(0).channels
    if padding is None or not padding.is_spatial or padding.value > np.finfo(np.float32).min:
        return None
    packs = channels < BITS_PER_WORD or channels % BITS_PER_WORD == 0
    return pad if packs and pad.output.type == "FLOAT32" else None


def _shift_bias(graph: Graph, source: Op, threshold: Threshold) -> bool:
    """Adds the sign's threshold to the bias of the float convolution before the pool."""
    if fused_activation(source) != 0 or np.any(threshold.falls):
        return False
    bias = bias_values(source.optional(2), source.output.channels) if len(source.inputs) > 2 else None
    if bias is None or source.output.type != "FLOAT32" or source.input(1).type != "FLOAT32":
        return False
    first, _, _ = crossing(np.ones(1), bias.astype(np.float64), threshold.level)
    shifted = np.float32(0) - first
    if not np.all(np.isfinite(shifted)):
        return False
    graph.set_input(source, 2, constant(derived(source.input(1).name, "/bias"), shifted))
    source.output.name, source.output.origin = derived(source.output.name, "/shifted"), None
    return True


def _across_grid(graph: Graph, sign: Op, threshold: Threshold, notes: Notes) -> bool:
    """Moves the threshold of a sign before the quantization of a binary layer's output. The sign is the same, with
    another threshold. Ops that only move values between the quantization and the sign are applied to the floats
    instead.
    """
    ops = _from_quantize(graph, sign.input(0))
    if not ops or not takes_affine(graph, ops[0].input(0)):
        return False
    x, levels = ops[0].input(0), ops[0].output
    numbers = numbers_of_grid(levels)
    if numbers is None or not threshold.is_uniform or not numbers[0] < threshold.level[0] <= numbers[-1]:
        return False  # the sign is constant for all levels
    first = first_rounded_to(next_of_grid(threshold.level, levels), levels)
    for op in ops[1:]:
        if op.name != "DEQUANTIZE":
            x = copy_of(graph, op, x, "/of_floats", before=sign)
    graph.replace(sign, sign_op(x, sign.output, replace(threshold, level=first)))
    for op in reversed(ops):
        graph.remove(op)
    return True


def _from_quantize(graph: Graph, tensor: Tensor) -> list[Op]:
    """Finds the QUANTIZE from which the int8 values of `tensor` come. Returns it with the ops between the QUANTIZE and
    `tensor`, in order; none of them has another consumer.
    """
    ops: list[Op] = []
    while (op := graph.producer(tensor)) is not None and graph.sole_consumer(tensor) is not None:
        ops.insert(0, op)
        if op.name == "QUANTIZE":
            return ops if op.input(0).type == "FLOAT32" else []
        if op.name != "DEQUANTIZE" and not (facts(op).moves and facts(op).on_signs):
            break
        tensor = op.input(0)
    return []


_ACROSS: tuple[Callable[[Graph, Op, Threshold, Notes], bool], ...] = (
    _across_arithmetic,
    _across_max_pool,
    _across_grid,
)
