"""Per-channel affine ops, x · scale + shift, alone and in a row in front of a sign."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from litebnn.contract import LCE_QUANTIZE
from litebnn.graph import Array, Graph, Op, Tensor, facts
from litebnn.rewriting.match import floats, fused_activation

# y > 0 is y - LEAST >= 0: what a strict comparison subtracts in front of its LceQuantize. Runtimes may flush smaller
# numbers to zero.
LEAST = np.float32(np.finfo(np.float32).tiny)
# A damaged file may claim any number of channels, and arrays hold a value for each.
_MOST_CHANNELS = 1 << 20


def is_strictness(shift: Array) -> bool:
    """Whether an addend stands for a strict comparison: it turns y < 0 into y <= 0."""
    return bool(np.all(shift == -LEAST))


def is_lost(addend: Array, total: Array) -> Array:
    """bool [channels]: whether a float32 `total` is the same without what a sign would see of an addend.

    That is all of a negative one. Of one right below a short number, which makes a comparison with that a strict one,
    it is the difference from it.
    """
    with np.errstate(all="ignore"):
        rounded, others = total.astype(np.float32), total - addend
        above = next_level(addend.astype(np.float32), up=True)
        all_of_it = (addend < 0) & (rounded == others.astype(np.float32))
        strictness = is_short(above) & (rounded == (others + above).astype(np.float32))
    return np.asarray(np.isfinite(rounded) & (all_of_it | strictness))


def is_short(values: Array) -> Array:
    """Whether float32 values are those of float16, as people write numbers."""
    with np.errstate(over="ignore"):
        return np.asarray(values == values.astype(np.float16))


def normal_level(values: Array, *, up: bool) -> Array:
    """float32 values with subnormal ones, which runtimes may flush, rounded to zero or the first normal number."""
    away = LEAST if up else -LEAST
    rounded = np.where(np.sign(values) == np.sign(away), away, np.float32(0))
    return np.where(np.abs(values) < LEAST, np.where(values == 0, np.float32(0), rounded), values)


def next_level(values: Array, *, up: bool) -> Array:
    """The float32 next above (or below) each value, of zero and the normal numbers."""
    return normal_level(np.nextafter(values, np.float32(np.inf if up else -np.inf)), up=up)


def per_channel(tensor: Tensor | None, channels: int) -> Array | None:
    """float32 [channels] of a float constant that is the same for every position, or None."""
    array = floats(tensor)
    if array is None or channels < 1:
        return None
    if array.size == 1:
        return np.full(channels, array.reshape(-1)[0], np.float32)
    if array.size == channels and array.shape[-1] == channels:
        return array.reshape(-1)
    return None


def affine_of(op: Op, channels: int, *, left: bool) -> tuple[Array, Array] | None:
    """float64 [channels] scale and shift of an op that is x · scale + shift; x is its left or its right input."""
    if not 0 < channels <= _MOST_CHANNELS:
        return None
    if op.name == "NEG":
        return np.full(channels, -1.0), np.zeros(channels)
    if op.name not in ("MUL", "DIV", "ADD", "SUB") or op.inputs[0] is op.inputs[1]:
        return None
    values32 = per_channel(op.input(1 if left else 0), channels)
    if values32 is None or op.output.type != "FLOAT32":
        return None
    values, ones, zeros = values32.astype(np.float64), np.ones(channels), np.zeros(channels)
    if op.name == "MUL":
        return values, zeros
    if op.name == "ADD":
        return ones, values
    if op.name == "SUB":
        return (ones, -values) if left else (-ones, values)
    return (1.0 / values, zeros) if left and np.all(values != 0) else None


def works_on_channels(op: Op, x: Tensor) -> bool:
    """Whether the op computes each element of its output from the one of `x` and from its channel."""
    if op.name == LCE_QUANTIZE:
        return True
    if op.output.dims != x.dims or op.output.type != "FLOAT32":
        return False
    return facts(op).clamp is not None or affine_of(op, x.channels, left=op.inputs[0] is x) is not None


@dataclass(frozen=True)
class AffineChain:
    """Ops in front of a sign that together compute source · scale + shift, the last one first.

    Attributes:
        scale, shift: float64 [channels].
        strict: the sign is +1 above zero only, not at zero.
        addend: float64 [channels], the part of the shift that the last op adds.
    """

    ops: tuple[Op, ...]
    source: Tensor
    scale: Array
    shift: Array
    strict: bool
    addend: Array

    def is_strict_at(self, values: Array) -> Array:
        """bool [channels]: the sign is strict, or becomes so where float32 values lose the last addend among them."""
        return self.strict | is_lost(self.addend, values)

    def lowered(self, values: Array) -> Array:
        """float32 addends for which a plain sign does what a strict one does for `values`, float64 ones."""
        rounded = values.astype(np.float32)
        return np.where(self.is_strict_at(values), next_level(rounded, up=False), rounded)


def affine_chain(graph: Graph, tensor: Tensor) -> AffineChain:
    """The longest run of per-channel affine ops that ends in `tensor` and that nobody else reads from."""
    channels = tensor.channels
    ops: list[Op] = []
    size = channels if 0 < channels <= _MOST_CHANNELS else 0
    scale, shift, strict = np.ones(size), np.zeros(size), False
    addend = np.zeros(size)
    while (op := graph.producer(tensor)) is not None and graph.sole_consumer(tensor) is not None:
        if fused_activation(op) != 0 or not op.inputs or not op.outputs:
            break
        last = op.inputs[-1]
        constant_last = last is not None and last.array is not None
        affine = affine_of(op, channels, left=constant_last)
        source = op.inputs[0] if constant_last or op.name == "NEG" else op.inputs[-1]
        if affine is None or source is None or source.dims != tensor.dims or source.type != "FLOAT32":
            break
        if not ops and is_strictness(affine[1]):
            scale, strict = affine[0] * scale, True
        else:
            addend = addend if ops else affine[1]
            scale, shift = affine[0] * scale, affine[1] * scale + shift
        ops.append(op)
        tensor = source
    return AffineChain(tuple(ops), tensor, scale, shift, strict, addend)


def ends_in_sign(graph: Graph, op: Op) -> bool:
    """Whether an op is a sign, or scales or shifts, by constants on its right, what nothing but a sign reads."""
    while op.name != LCE_QUANTIZE:
        reader, x = graph.sole_consumer(op.output), op.inputs[0]
        if x is None or reader is None or fused_activation(op) != 0:
            return False
        if affine_of(op, x.channels, left=True) is None:
            return False
        op = reader
    return True
