"""Represents a tensor that takes only a few different values as a sum of signs, which a binary layer can read instead.

Two values are a sign times a scale, plus a shift. Evenly spaced levels, such as those of a 2-bit quantizer, are a sum
of signs. There is one sign, with its own threshold, for each step from a level to the next.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from litebnn.analysis.affine import next_level
from litebnn.analysis.layouts import COMPARING, picked_from
from litebnn.analysis.match import bits_of, fused_activation
from litebnn.analysis.numbers.zeros import PADDED, zeros_of
from litebnn.analysis.padding import PADDING, constant_padding, layer_padding, unpadded_input
from litebnn.analysis.quantization import ROUNDING, on_grid, step_of
from litebnn.analysis.rounding import rounded_values
from litebnn.analysis.signs import find_two_values, occurring
from litebnn.analysis.transfers import Values
from litebnn.analysis.values import values_of
from litebnn.analysis.walks import MOST_OPS
from litebnn.graph import Array, Graph, Op, Question, Tensor

# The largest number of signs that represent one tensor. Each sign costs as much as a binary layer, and with three
# signs (2 bits) a layer is still several times faster than in float.
MOST_SIGNS = 3
# The largest number of two-valued tensors from which one tensor may take its values. Dense blocks concatenate some
# dozens of them, but a damaged file may have any number.
_MOST_SOURCES = 1 << 10
# The largest height or width of an image. A damaged file may declare any.
_LARGEST_SIDE = 1 << 14
# Differences between neighbouring levels count as equal if they differ by at most this much, relative to the largest
# level. Rounding makes them differ a little.
_TOLERANCE = 1e-6
# Two numbers count as equal if they are at most this many quantization steps apart. The limit is slightly above 1,
# because levels are rounded to float32.
_NEXT_LEVEL = 1.001


@dataclass(frozen=True)
class SignSum:
    """A SignSum represents values as middle + Σ scales[j] · s_j, where the sign s_j is +1 on one side of thresholds[j],
    else -1."""

    # The number halfway between the lowest and the highest of the represented values.
    middle: float
    scales: Array  # float64 [k], all of one magnitude
    thresholds: Array  # float32 [k], ascending; a step of double height has two equal ones
    rising: Array  # bool [k], true if s_j is +1 at and above its threshold, else below
    # Two values count as equal if their difference is at most this number.
    tolerance: float = 0.0

    def number(self, value: float) -> float:
        """Returns the number s for which middle + Σ scales[j] · s is `value`. Returns NaN if there is no such number:
        the scales add up to zero, and `value` is not the middle.
        """
        total, distance = float(self.scales.sum()), value - self.middle
        if abs(total) < abs(self.scales[0]):
            return 1.0 if abs(distance) <= self.tolerance else math.nan
        number = distance / total
        nearest = float(np.rint(number))  # max pools are padded with -inf, which round() refuses
        return nearest if abs((nearest - number) * total) <= self.tolerance else number

    def weights(self, minus_one: Array, alpha: Array) -> Array:
        """Returns the weights float32 [O, ..., k · channels] of a layer that reads the k signs instead of their sum.

        Args:
            minus_one: bool [O, ..., channels], true where a weight of the layer that reads the sum is negative.
            alpha: float32 [O], the magnitudes of that layer's weights.
        """
        magnitudes: Array = (alpha * abs(self.scales[0])).astype(np.float32).reshape(-1, *[1] * (minus_one.ndim - 1))
        negative = np.concatenate([minus_one != (scale < 0) for scale in self.scales], axis=-1)
        return np.where(negative, -magnitudes, magnitudes)

    def bias(self, bias: Array, weights: Array) -> Array:
        """Returns the bias [O] of a layer that reads the signs instead of their sum. `bias` [O] and `weights` [O, ...]
        are those of the layer that reads the sum.
        """
        sums = weights.reshape(weights.shape[0], -1).sum(axis=1, dtype=np.float64)
        shifted: Array = (bias + self.middle * sums).astype(np.float32)
        return shifted


@dataclass(frozen=True)
class FewValues:
    """FewValues describes a tensor whose elements take few different values. It has the tensors in which these values
    first occur, and the ops after them, which only move or round the values."""

    # The tensors in which the few values first occur, each with its step function. There is one tensor with more than
    # two values, or there are one or more tensors with two values each.
    sources: Mapping[Tensor, Values]
    # The ops between the tensors in `sources` and the described tensor, in order of execution.
    ops: tuple[Op, ...]
    # The values that the described tensor takes. Two values are in ascending order. More than two values are in the
    # order of the corresponding values in `sources`.
    numbers: Array
    # The values with which the ops in `ops` pad.
    pads: tuple[float, ...] = ()
    # The largest quantization scale of the tensors through which the few values pass, up to the described tensor; 0 if
    # all these tensors are float.
    step: float = 0.0

    @property
    def first(self) -> Values:
        return next(iter(self.sources.values()))

    @property
    def x(self) -> Tensor:
        """Returns the upstream tensor of which the first tensor in `sources` is a step function."""
        assert self.first.x is not None
        return self.first.x

    @property
    def is_moved_only(self) -> bool:
        """True if each op selects elements of the output of the op before it, and the first op of the one source."""
        moved = [*self.sources, *(op.output for op in self.ops)]
        is_one = len(self.sources) == 1 and all(picked_from(op) == (0,) and len(op.outputs) == 1 for op in self.ops)
        return is_one and all(op.input(0) is tensor for op, tensor in zip(self.ops, moved, strict=False))

    @property
    def are_levels(self) -> bool:
        return len(self.numbers) > 2


def few_levels(values: Values, *, for_zeros: bool = True) -> SignSum | None:
    """Returns evenly spaced levels as a sum of signs; None for other values.

    Args:
        for_zeros: True for signs that are all +1 for the level zero, so that padding with +1 is padding with zero.
        False for signs that all rise with the levels.
    """
    edges, levels = values.edges, values.values
    if not values.is_known or values.step or not np.all(np.isfinite(levels)) or len(edges) < 2:
        return None
    jumps = np.diff(levels)
    times = np.rint(np.abs(jumps) / np.abs(jumps).min()).astype(int)
    step = float(np.abs(jumps).sum() / times.sum())
    if times.sum() > MOST_SIGNS or np.any(np.abs(np.abs(jumps) - times * step) > _tolerance(levels)):
        return None
    first_zero = np.argmin(np.abs(levels)) if for_zeros and has_zero(levels) else len(edges)
    rising = np.arange(len(edges)) < first_zero
    scales = np.where(rising, 1, -1) * np.sign(jumps) * step / 2
    scales, edges, rising = (np.repeat(each, times) for each in (scales, edges, rising))
    return SignSum(float(levels[0] + levels[-1]) / 2, scales, edges, rising, _tolerance(levels))


def has_zero(levels: Array) -> bool:
    return bool(np.abs(levels).min() <= _tolerance(levels))


def _tolerance(levels: Array) -> float:
    return _TOLERANCE * float(np.abs(levels).max())


def find_levels(graph: Graph, tensor: Tensor) -> Values | None:
    """Returns the values of a float tensor with few, evenly spaced levels; None for other tensors.

    Some levels occur only at a single number, such as the 0 of SIGN at zero. They count only if x is likely to be 0
    there.
    """
    # The farther tensor may be 0 elsewhere, as the sum c is in SIGN(c - 2).
    found = (rounded_values(graph, tensor), values_of(graph, tensor))
    levels = (_as_levels(graph, tensor, occurring(graph, values)) for values in found if values is not None)
    return next((each for each in levels if each is not None), None)


def _as_levels(graph: Graph, tensor: Tensor, values: Values) -> Values | None:
    x = values.x
    if x is None or x.type != "FLOAT32" or x.dims != tensor.dims or x.channels < 1 or tensor.type != "FLOAT32":
        return None
    single = single_numbers(values)
    if len(single) and (np.any(single) or not zeros_of(graph, x) - {PADDED}):
        return None
    return None if few_levels(values) is None else values


def single_numbers(values: Values) -> Array:
    """Returns the numbers of x at which a step function has a value of their own, such as the 0 of SIGN at zero."""
    edges = values.edges
    single: Array = edges[:-1][next_level(edges[:-1], up=True) == edges[1:]]
    return single


def handed_on(op: Op) -> tuple[int, ...]:
    """Returns the indices of the inputs whose values an op passes on, apart from their position and from rounding.

    A MUL by a tensor of two opposite values counts too: each product is one of the other input's values, or the
    opposite.
    """
    if op.name in PADDING:
        return () if constant_padding(op) is None else (0,)
    if op.name == "MUL" and fused_activation(op) == 0:
        return (0, 1)
    return (0,) if op.name in ROUNDING else picked_from(op)


def _few_values(graph: Graph, tensor: Tensor) -> FewValues | None:
    two, op = find_two_values(graph, tensor), graph.producer(tensor)
    if two is not None:
        return FewValues({tensor: two}, (), np.sort(two.values), step=two.step)
    levels = find_levels(graph, tensor)
    if levels is not None:
        return FewValues({tensor: levels}, (), levels.values)
    if op is None:
        return None
    moved = [op.optional(index) for index in handed_on(op)]
    known = {part: few_values(graph, part) for part in moved if part is not None}
    found = [few for few in known.values() if few is not None]
    ops = tuple(dict.fromkeys((*(each for few in found for each in few.ops), op)))
    if not found or len(found) < len({*moved}) or len(ops) > MOST_OPS:
        return None
    sources = {source: values for few in found for source, values in few.sources.items()}
    if len(sources) > _MOST_SOURCES:
        return None
    first = found[0]
    if any(few.are_levels for few in found):
        rises = bool(np.all(np.diff(first.numbers) > 0))
        keeps = picked_from(op) == (0,) and len(op.outputs) == 1 and (rises or op.name not in COMPARING)
        return replace(first, ops=ops) if keeps else None
    numbers = _numbers_of(op, [few for part in moved if part is not None and (few := known[part])], step_of(tensor))
    padding = constant_padding(op) if op.name in PADDING else None
    pads = [pad for few in found for pad in few.pads]
    if padding is not None and np.any(padding.amounts):
        pads.append(padding.value)
    stored = None if numbers is None else on_grid(np.array([*numbers, *pads]), tensor)
    if stored is None or np.abs(stored[:2]).max() > np.finfo(np.float32).max:
        return None
    step = max(step_of(tensor), *(few.step for few in found))
    return FewValues(sources, ops, stored[:2], tuple(stored[2:].tolist()), step)


# few_values(graph, tensor) returns the `FewValues` of a tensor; None if the tensor takes many values.
few_values = Question(_few_values, lambda op: [op.optional(index) for index in handed_on(op)])


def _numbers_of(op: Op, parts: Sequence[FewValues], step: float) -> Array | None:
    """Returns the lower and the higher value of an op's output if it takes only two values, otherwise None. Values that
    differ by at most `step`, a quantization step, count as one value.
    """
    numbers = np.array([few.numbers for few in parts])
    if op.name == "MUL":
        are_opposite = not any(abs(few.numbers.sum()) > step or few.pads for few in parts)
        return np.prod(numbers[:, 1]) * np.array([-1, 1]) if are_opposite else None
    is_one = np.all(np.ptp(numbers, axis=0) <= step)
    return (numbers.min(axis=0) + numbers.max(axis=0)) / 2 if is_one else None


def values_read(graph: Graph, layer: Op, source: Tensor, *, is_padded: bool = False) -> FewValues | None:
    """Returns the `FewValues` of a layer's input, including the value 0 if the layer pads its input. None if the input
    takes many values, or is a plain sign of 1 and -1, which a layer can read as it is.

    Args:
        source: the layer's input, or the tensor that ops before the layer pad with zeros.
        is_padded: True if such ops pad it.
    """
    few = few_values(graph, source)
    if few is None or few.numbers[0] == few.numbers[1]:
        return None
    is_sign = not few.step and not few.are_levels and layer.output.type == "FLOAT32"
    if is_sign and all(_is_plain_sign(graph, values) for values in few.sources.values()):
        return None
    pads = is_padded or layer.name == "TRANSPOSE_CONV" or layer_padding(layer) != ((0, 0), (0, 0))
    return replace(few, pads=(*few.pads, 0.0)) if pads else few


def is_unpacked(graph: Graph, values: Values) -> bool:
    """True if the values depend on a tensor that is unpacked from bits."""
    return values.x is not None and values.x.type == "FLOAT32" and bits_of(graph, values.x) is not None


def _is_plain_sign(graph: Graph, values: Values) -> bool:
    """True if a layer can read the values directly as bits: -1 below an edge and 1 above it, or the opposite. The
    opposite does not count if the values depend on a tensor that is unpacked from bits.
    """
    low, high = values.values
    return (low, high) == (-1.0, 1.0) or (not is_unpacked(graph, values) and (low, high) == (1.0, -1.0))


def sum_of_signs(graph: Graph, few: FewValues, *, rather_falling: bool = False) -> SignSum | None:
    """Returns the sum of signs that represents a tensor's few values; None if there is none. The signs must be +1, -1
    or 0 at all padding values. Signs that are +1 at the padding are preferred, because LceBconv2d can pad with +1.

    Args:
        rather_falling: True to choose the sign that is +1 for the lower of two values, if both are possible.
    """
    sums = _sums_of_levels(few.first) if few.are_levels else _sums_of_two(graph, few)
    return max(
        (one for one in sums if all(one.number(pad) in (-1.0, 0.0, 1.0) for pad in few.pads)),
        key=lambda one: (sum(map(one.number, few.pads)), bool(np.all(one.rising)) != rather_falling),
        default=None,
    )


def padded_values(graph: Graph, layer: Op) -> tuple[FewValues, float] | None:
    """Returns the few values of a convolution's input, and their middle, if zeros that are none of them pad the input.
    None if the input has no such values, or if signs represent the values and the zeros as they are.
    """
    source, zeros = unpadded_input(graph, layer)
    own, few = layer_padding(layer), values_read(graph, layer, source)
    if few is None or not few.is_moved_only or few.step or layer.output.type != "FLOAT32" or own is None:
        return None
    amounts = zeros + np.asarray(own)
    if not np.any(amounts) or min(source.dims[1:3]) < 1 or not _has_size(layer, source, amounts):
        return None
    if few.are_levels and layer.input(1).channels != source.channels:
        return None
    signs = sum_of_signs(graph, replace(few, pads=()))
    is_exact = sum_of_signs(graph, replace(few, pads=(0.0,))) is not None
    return None if signs is None or is_exact else (few, signs.middle)


def _has_size(layer: Op, source: Tensor, amounts: Array) -> bool:
    """True if the output of a convolution has the height and width that follow from those of its input, and no more
    than images have."""
    o, sizes, taps = layer.options, np.array(source.dims[1:3]), np.array(layer.input(1).shape[1:3])
    strides, dilations = (o.stride_h, o.stride_w), (o.dilation_h_factor, o.dilation_w_factor)
    outputs = (sizes + amounts.sum(axis=1) - (taps - 1) * dilations - 1) // strides + 1
    return tuple(outputs) == layer.output.dims[1:3] and outputs.min() >= 1 and outputs.max() <= _LARGEST_SIDE


def _sums_of_levels(levels: Values) -> list[SignSum]:
    sums = (few_levels(levels, for_zeros=for_zeros) for for_zeros in (False, True))
    return [one for one in sums if one is not None]


def _sums_of_two(graph: Graph, few: FewValues) -> list[SignSum]:
    low, high = few.numbers.tolist()
    # If the model already has packed bits for the two values, these bits determine which value +1 stands for. If a
    # later op takes maxima of the values, +1 must stand for the higher value. A maximum of values is then a maximum of
    # signs.
    falls = {values.falls for values in few.sources.values() if is_unpacked(graph, values)}
    must_rise = any(op.name in (*COMPARING, "MUL") for op in few.ops)
    half, tolerance = (high - low) / 2, max(_NEXT_LEVEL * few.step, _tolerance(few.numbers))
    return [
        SignSum((high + low) / 2, np.array([scale]), few.first.edges, np.array([scale > 0]), tolerance)
        for scale in (half, -half)
        if falls <= {scale < 0} and (scale > 0 or not must_rise)
    ]


def why_no_sum(few: FewValues) -> str:
    """Returns the reason why `sum_of_signs` finds no sum of signs."""
    if few.are_levels:
        return f"{of_few(few)} and is padded with {few.pads[0]:g}, which is none of them"
    low, high = few.numbers.tolist()
    stray = [pad for pad in few.pads if pad not in (low, high, (low + high) / 2)]
    if stray:
        return f"{of_few(few)} and is padded with {stray[0]:g}, which is neither"
    what = "maxima" if any(op.name in COMPARING for op in few.ops) else "products"
    return f"{of_few(few)}, of which it takes {what} against a sign"


def of_few(few: FewValues) -> str:
    """Returns the first words of a reason for a message: the values that the layer's input takes."""
    return "its input takes " + ("several levels" if few.are_levels else "{:g} and {:g}".format(*few.numbers))
