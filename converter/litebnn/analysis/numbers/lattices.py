"""Finds tensors whose numbers are evenly spaced, such as sums of signs: the multiples of a step, plus an offset.

A sum of n signs is n plus a multiple of 2. It is often 0 for an even n, and never for an odd n.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from litebnn.analysis.affine import AFFINE, affine_of
from litebnn.analysis.layouts import picked_from
from litebnn.analysis.match import fused_activation
from litebnn.analysis.padding import PADDING, constant_padding, layer_padding, pooled_input
from litebnn.analysis.transfers import SELECTS
from litebnn.analysis.values import choices_of, values_of
from litebnn.analysis.weights import BINARY_LAYERS, layer_bias, layer_weights
from litebnn.contract import ACTIVATION_RANGES, Padding
from litebnn.graph import Array, Graph, Op, Question, Tensor, facts

# Steps count as multiples of each other if they are so up to this share. Rounding makes them differ a little.
_TOLERANCE = 1e-5
# The most steps of a common lattice that one step of a lattice may have.
_MOST_STEPS = 64
_MOST_VALUES = 8
_MAXIMA = ("MAX_POOL_2D", "REDUCE_MAX", "REDUCE_MIN")
_MEANS = ("AVERAGE_POOL_2D", "MEAN", "SUM")


@dataclass(frozen=True)
class Lattice:
    """The numbers step · (phase + k) for all integers k, with a step and a phase for each channel, or one for all."""

    step: Array  # float64 [1] or [channels], above 0; NaN if only the phase is known
    phase: Array  # float64 of the same shape, at least 0 and below 1
    # True if the numbers are 1 and -1. The SIGN of signs in another order is left to the sign form around it, if there
    # is one: in sign(sign(x) + 0.1), the outer one then reads the signs themselves.
    is_of_signs: bool = False

    @property
    def offset(self) -> Array:
        offset: Array = np.where(self.phase == 0, 0.0, self.step * self.phase)
        return offset

    @property
    def has_zero(self) -> bool:
        """True if 0 is one of the numbers, in any channel."""
        return bool(np.any(self.phase == 0))

    @property
    def is_never_zero(self) -> bool:
        """True if 0 is halfway between two of the numbers in all channels, as for sums of an odd number of signs."""
        return bool(np.all(self.phase == 0.5))


def _of(step: Array | float, phase: Array | float) -> Lattice | None:
    steps, phases = np.broadcast_arrays(*(np.atleast_1d(np.asarray(each, np.float64)) for each in (step, phase)))
    return Lattice(steps, phases % 1.0) if np.all(np.isfinite(phases)) and not np.any(steps <= 0) else None


def _common_step(left: Array, right: Array) -> Array:
    """Returns the largest numbers of which both arrays are multiples, by Euclid's algorithm; NaN if they are finer than
    `_MOST_STEPS` allows.
    """
    larger, smaller = np.broadcast_arrays(np.maximum(left, right), np.minimum(left, right))
    least = larger / _MOST_STEPS
    while np.any(smaller > least / 2):
        rest = np.abs(larger - smaller * np.rint(larger / np.where(smaller > 0, smaller, 1)))
        larger, smaller = np.where(smaller > least / 2, [smaller, rest], [larger, smaller])
    exact = (smaller <= _TOLERANCE * least * _MOST_STEPS) & (larger >= least)
    return np.where(exact, larger, np.nan)


def _sum(left: Lattice, right: Lattice) -> Lattice | None:
    step = _common_step(left.step, right.step)
    return _of(step, (left.offset + right.offset) / step)


def _product(left: Lattice, right: Lattice, count: int = 1) -> Lattice | None:
    """The sum of `count` products of the numbers of two lattices."""
    step = left.step * right.step
    for own, other in ((left, right), (right, left)):
        step = _common_step(step, own.offset * other.step) if np.any(own.offset) else step
    return _of(step, count * left.offset * right.offset / step)


def _with_number(lattice: Lattice, number: float) -> Lattice | None:
    """Adds a number, such as that of padding, to the numbers of a lattice."""
    distance = np.abs(lattice.offset - number)
    step = _common_step(lattice.step, np.where(distance == 0, lattice.step, distance))
    return _of(step, number / step)


def _is_on(lattice: Lattice, number: float) -> bool:
    places = number / lattice.step - lattice.phase
    return bool(np.all(np.abs(places - np.rint(places)) <= _TOLERANCE))


def _of_numbers(numbers: Array) -> Lattice | None:
    """Returns the lattice of a few numbers."""
    if len(numbers) > _MOST_VALUES or len(numbers) < 2 or not np.all(np.isfinite(numbers)):
        return None
    first, *others = np.unique(numbers)
    step = np.asarray([others[0] - first])
    for other in others[1:]:
        step = _common_step(step, np.asarray([other - first]))
    found = _of(step, first / step)
    return found and replace(found, is_of_signs=numbers.tolist() == [-1, 1])


def _of_each(lattice: Lattice, op: Op) -> Lattice | None:
    """Returns the lattice of an op that keeps the numbers of its input, but may move them between channels."""
    keeps_channels = op.name == "MAX_POOL_2D" or facts(op).clamp is not None or facts(op).keeps_signs
    if lattice.step.size == 1 or keeps_channels:
        return lattice
    if lattice.has_zero:
        return _of(np.nan, 0.0)
    return _of(np.nan, lattice.phase[:1]) if np.ptp(lattice.phase) == 0 else None


def _kept(graph: Graph, op: Op, parts: Sequence[Lattice]) -> Lattice | None:
    first, *others = parts
    if any(not np.array_equal(first.phase, other.phase) for other in others):
        return None
    same = all(np.array_equal(first.step, other.step) for other in others)
    return _of_each(first if same else Lattice(np.full_like(first.step, np.nan), first.phase), op)


def _padded(graph: Graph, op: Op, parts: Sequence[Lattice]) -> Lattice | None:
    padding = constant_padding(op)
    if padding is None or not math.isfinite(padding.value):
        return None
    if parts[0].step.size > 1 and np.any(padding.amounts[-1]):
        return None
    return _with_number(parts[0], padding.value)


def _shifted(graph: Graph, op: Op, parts: Sequence[Lattice]) -> Lattice | None:
    if len(parts) == 2:
        left, right = parts
        if op.name == "SUB":
            right = Lattice(right.step, -right.phase)
        combined = {"ADD": _sum, "SUB": _sum, "MUL": _product}.get(op.name)
        return None if combined is None or op.input(0).channels != op.input(1).channels else combined(left, right)
    [part] = parts
    line = affine_of(op, op.output.channels, left=not op.input(0).is_constant)
    if line is None:
        return None
    scale, shift = (each[:1] if np.ptp(each) == 0 else each for each in line)
    step = np.where(scale == 0, 2 * np.abs(shift) + (shift == 0), part.step * np.abs(scale))  # 0 · x is any lattice's
    return _of(step, part.phase * np.sign(scale) + np.where(shift == 0, 0.0, shift / step))


def _mean(graph: Graph, op: Op, parts: Sequence[Lattice]) -> Lattice | None:
    lattice, before, after = parts[0], op.input(0).shape, op.output.shape
    if op.name == "AVERAGE_POOL_2D":
        count = op.options.filter_height * op.options.filter_width
        if op.options.padding != Padding.VALID:
            return None
    else:
        count = math.prod(before) // max(math.prod(after), 1)
    if (lattice.step.size > 1 and op.name != "AVERAGE_POOL_2D") or min(op.input(0).dims, default=-1) < 0 or count < 1:
        return None
    return _of(lattice.step if op.name == "SUM" else lattice.step / count, lattice.phase * count)


def _layer(graph: Graph, op: Op, parts: Sequence[Lattice]) -> Lattice | None:
    """Returns the lattice of a layer with weights of ±alpha and 0, or of a product of two computed matrices."""
    data, by_channel = parts[0], op.name == "DEPTHWISE_CONV_2D"
    if len(parts) == 2:
        count = op.input(0).dims[-2] if getattr(op.options, "adj_x", False) else op.input(0).channels
        known = count > 0 and all(each.step.size == 1 for each in parts)
        return _product(data, parts[1], count) if known else None
    weights = layer_weights(graph, op) if op.input(facts(op).constants[0]).is_constant else None
    if by_channel and weights is not None:
        weights = np.moveaxis(weights, -1, 0)
    bias = None if weights is None else layer_bias(graph, op, len(weights))
    if weights is None or bias is None or not weights.size:
        return None
    if data.step.size > 1:
        if not by_channel or len(weights) % data.step.size:
            return None
        times = len(weights) // data.step.size
        data = Lattice(np.repeat(data.step, times), np.repeat(data.phase, times))
    # Outputs of a transposed convolution differ in their number of terms, as if some were padded.
    is_unknown = op.name == "TRANSPOSE_CONV" or (by_channel and op.options.padding != Padding.VALID)
    pads = None if is_unknown else layer_padding(op)
    padded = _with_number(data, 0.0) if pads is None or np.any(pads) else data
    flat = weights.reshape(len(weights), -1)
    alpha = np.abs(flat).max(axis=1)
    alpha = np.where(alpha == 0, 1, alpha).astype(np.float64)
    counts = np.rint(flat / alpha[:, None])
    if padded is None or np.any(np.abs(flat / alpha[:, None] - counts) > _TOLERANCE):
        return None
    step = alpha * padded.step
    return _of(step, counts.sum(axis=1) * padded.phase + bias / step)


_Transfer: TypeAlias = Callable[[Graph, Op, Sequence[Lattice]], "Lattice | None"]
# For each kind of op, the function that computes the lattice of its output from those of its computed inputs.
_TRANSFER: dict[str, _Transfer] = {
    **dict.fromkeys(AFFINE, _shifted),
    **dict.fromkeys(PADDING, _padded),
    **dict.fromkeys(_MEANS, _mean),
    **dict.fromkeys((*BINARY_LAYERS, "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"), _layer),
}


def _read(op: Op) -> list[Tensor | None]:
    """The inputs whose lattices determine that of the output."""
    if op.name == "TRANSPOSE_CONV":
        return [op.input(facts(op).data)]
    if op.name in _TRANSFER:
        count = 2 if op.name in (*AFFINE, *BINARY_LAYERS) else 1
        return [tensor for tensor in op.inputs[:count] if tensor is not None and not tensor.is_constant]
    if op.name in _MAXIMA or facts(op).clamp is not None or facts(op).keeps_signs:
        return op.inputs[:1]
    return [op.optional(index) for index in picked_from(op)]


def _find(graph: Graph, tensor: Tensor) -> Lattice | None:
    op = graph.producer(tensor)
    if op is None or tensor.type != "FLOAT32":
        return None
    for of in (choices_of, values_of) if op.name in SELECTS else (values_of,):
        values = of(graph, tensor)
        if values.is_known and values.x is not None:
            return _of_numbers(values.values)
    read = [pooled_input(graph, op)] if op.name == "MAX_POOL_2D" else _read(op)
    parts = [None if each is None else lattice_of(graph, each) for each in read]
    known = [part for part in parts if part is not None]
    activation = facts(op).clamp or fused_activation(op)
    if not parts or len(known) < len(parts) or activation is None:
        return None
    found = _TRANSFER.get(op.name, _kept)(graph, op, known)
    if found is None or not (activation or facts(op).keeps_signs):
        return found
    limits = [limit for limit in ACTIVATION_RANGES[activation] if math.isfinite(limit)]
    if limits and all(_is_on(found, limit) for limit in limits):
        return found
    return _of(np.nan, 0.0 * found.phase if 0 in limits else found.phase)


# lattice_of(graph, tensor) returns the lattice of a float tensor; None if its numbers are not known to be evenly
# spaced.
lattice_of = Question(_find, _read)
