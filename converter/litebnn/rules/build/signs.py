"""Finds tensors that hold signs, and makes the ops that pack, pad and negate their bits."""

from __future__ import annotations

import numpy as np

from litebnn.analysis.affine import next_level
from litebnn.analysis.few_values import FewValues, SignSum
from litebnn.analysis.layouts import picked_from
from litebnn.analysis.match import THRESHOLD, bits_of, floats, fused_activation
from litebnn.analysis.padding import same_padding, word_of_padding
from litebnn.analysis.thresholds import Threshold
from litebnn.contract import LCE_BCONV_2D, LCE_DEQUANTIZE, LCE_QUANTIZE, Padding, PadValues, pack_bits
from litebnn.graph import (
    Array,
    Counted,
    Graph,
    Negated,
    Op,
    OpCode,
    Options,
    Question,
    Tensor,
    builtin_op,
    constant,
    derived,
    like,
    then,
)
from litebnn.rules.build.bconv import bconv_options, channels_per_group
from litebnn.rules.build.ops import can_pool_bits, concatenation_of, copy_of, custom_op, output_of, packed_like

# For each kind of op that computes new values, the indices of the inputs that must be signs for the output to be signs.
_COMPUTED: dict[str, tuple[int, ...]] = {"MUL": (0, 1), "NEG": (0,), "PADV2": (0, 2)}


def _is_sign(graph: Graph, tensor: Tensor) -> bool | None:
    if bits_of(graph, tensor) is not None and tensor.type == "FLOAT32":
        return True
    if _is_one_or_minus_one(tensor):
        return False
    parts = [is_sign(graph, source) for source in _sources(graph.producer(tensor))]
    return None if not parts or None in parts else any(parts)


# The question `is_sign` asks if a tensor has only the values ±1. The answer is True if the tensor is made of unpacked
# signs, False if it is made of constants of ±1 only, and None if it may have other values.
is_sign = Question(_is_sign, lambda op: _sources(op))


def holds_signs(graph: Graph, tensor: Tensor) -> bool:
    """True if a float tensor is an unpacked sign, or is made of unpacked signs and constants of ±1."""
    return is_sign(graph, tensor) is True


def bits_of_signs(graph: Graph, tensor: Tensor, *, before: Op) -> Tensor:
    """Returns the packed form of a tensor for which `holds_signs` is true. If the tensor is unpacked from bits, it
    returns these bits; otherwise it inserts an LceQuantize.
    """
    bits = bits_of(graph, tensor)
    if bits is None:
        bits = pack_signs(graph, tensor, derived(tensor.name, "/bits"), before=before)
        bits.origin = then(tensor, signs=tensor.channels)
    return bits


def _sources(op: Op | None) -> list[Tensor]:
    """Returns the inputs that must be signs for the outputs to be signs; empty for unknown ops."""
    if op is None or fused_activation(op) != 0 or (op.name == "MAX_POOL_2D" and not can_pool_bits(op)):
        return []
    indices = _COMPUTED.get(op.name) or picked_from(op)
    sources = [source for source in map(op.optional, indices) if source is not None]
    return sources if len(sources) == len(indices) else []


def _is_one_or_minus_one(tensor: Tensor) -> bool:
    array = floats(tensor)
    return array is not None and bool(np.all(np.abs(array) == 1))


def sign_op(x: Tensor, bits: Tensor, threshold: Threshold) -> Op:
    """Makes the op that packs the signs of a tensor with threshold `threshold`."""
    if threshold.is_plain:
        return custom_op(LCE_QUANTIZE, [x], bits)
    return Op(OpCode(THRESHOLD), [x], [bits], Options(threshold=threshold))


def pack_signs(graph: Graph, source: Tensor, name: str, threshold: Threshold | None = None, *, before: Op) -> Tensor:
    """Inserts the op that packs the signs of `source`, and returns its output."""
    return graph.insert(sign_op(source, packed_like(source, name), threshold or Threshold()), before=before).output


def difference(graph: Graph, x: Tensor, threshold: Threshold, *, before: Op) -> Tensor:
    """Inserts an op that computes the difference between x and a threshold, and returns its output. An LceQuantize of
    this difference packs the sign of x with this threshold. The library fuses an addition for each channel into the
    packing, so the difference takes no time.
    """
    level = threshold.level.reshape(()) if threshold.level.size == 1 else threshold.level
    name, falls, below, is_constant = threshold.name, threshold.falls, next_level(level, up=False), np.isinf(level)
    if threshold.subtracts:
        sides = (constant(threshold.number, below), x) if np.any(falls) else (x, constant(threshold.number, level))
        return graph.insert(builtin_op("SUB", sides, like(x, name)), before=before).output
    addends = np.where(falls, below, np.float32(0) - level)
    if np.any(is_constant) or np.any(falls):
        directions = np.where(is_constant, 0, np.where(falls, -1, 1)).astype(np.float32)
        addends = np.where(is_constant, np.where((level < 0) != falls, np.float32(1), np.float32(-1)), addends)
        turned, factors = like(x, derived(name, "/turned")), constant(derived(name, "/direction"), directions)
        x = graph.insert(builtin_op("MUL", [x, factors], turned), before=before).output
    if not np.any(addends):
        return x
    addition = builtin_op("ADD", [x, constant(threshold.number, addends)], like(x, name))
    return graph.insert(addition, before=before).output


def pad_with(graph: Graph, source: Tensor, amounts: Array, value: float, *, before: Op) -> Tensor:
    """Inserts a PADV2 of `source` and returns its output; returns `source` if all amounts are zero.

    Args:
        amounts: int [rank, 2], or int [2, 2] for the height and width of an NHWC tensor.
    """
    if not np.any(amounts):
        return source
    amounts = amounts if len(amounts) == len(source.dims) else np.pad(amounts, ((1, 1), (0, 0)))
    dims = [size if size < 0 else size + int(sum(a)) for size, a in zip(source.dims, amounts, strict=True)]
    padded = like(source, derived(source.name, "/padded"), dims=dims)
    inputs = [
        source,
        constant(derived(padded.name, "/amounts"), amounts.astype(np.int32)),
        constant(derived(padded.name, "/value"), np.asarray(value, np.int32 if source.type == "INT32" else np.float32)),
    ]
    graph.insert(builtin_op("PADV2", inputs, padded), before=before)
    return padded


def crop(graph: Graph, source: Tensor, name: str, amounts: Array, *, before: Op) -> Tensor:
    """Inserts the cropping of int [2, 2] rows and columns from an NHWC tensor, and returns its output."""
    sizes = [size if size < 0 else size - int(sum(cut)) for size, cut in zip(source.dims[1:3], amounts, strict=True)]
    cropped = like(source, name, dims=(source.dims[0], *sizes, source.dims[3]))
    begin, end = [0, *amounts[:, 0], 0], [0, *-amounts[:, 1], 0]
    bounds = {"/begin": begin, "/end": end, "/strides": [1, 1, 1, 1]}
    inputs = [constant(derived(name, suffix), np.asarray(value, np.int32)) for suffix, value in bounds.items()]
    # If a bit of `end_mask` is set, the op keeps the corresponding axis up to its end.
    mask = sum(1 << axis for axis, stop in enumerate(end) if stop == 0)
    slices = builtin_op("STRIDED_SLICE", [source, *inputs], cropped, end_mask=mask)
    return graph.insert(slices, before=before).output


def pad_packed(graph: Graph, bits: Tensor, channels: int, amounts: Array, value: int, *, before: Op) -> Tensor:
    """Inserts the padding of packed signs with +1 or -1, and returns its output. `pad_with` describes `amounts`."""
    word = word_of_padding(channels, value)
    if word is not None:
        return pad_with(graph, bits, amounts, word, before=before)
    padded = pad_with(graph, unpacked(graph, bits, channels, before=before), amounts, value, before=before)
    return pack_signs(graph, padded, derived(padded.name, "/bits"), before=before)


def unpacked(graph: Graph, bits: Tensor, channels: int, *, before: Op) -> Tensor:
    """Inserts the LceDequantize of packed signs, and returns its output."""
    signs = like(bits, derived(bits.name, "/signs"), type="FLOAT32", dims=(*bits.dims[:-1], channels))
    return graph.insert(custom_op(LCE_DEQUANTIZE, [bits], signs), before=before).output


def moved_source(graph: Graph, levels: FewValues, *, before: Op | None = None) -> Tensor:
    """Returns the tensor from which the activation levels are computed, in the layout of the levels. If ops move the
    levels, copies of these ops are inserted for this tensor, unless they exist already.
    """
    x = levels.x
    for op in levels.ops:
        x = copy_of(graph, op, x, "/before_levels", before=before)
    return x


def bits_of_levels(graph: Graph, levels: FewValues, total: SignSum, tensor: Tensor, *, before: Op) -> Tensor:
    """Packs all terms of `total`, the sum of signs that represents activation levels. Returns the bits, in which the
    terms are concatenated along the channels. Layers that read the same levels share the same bits.

    Args:
        tensor: the tensor of levels.
    """
    x, count, name = moved_source(graph, levels, before=before), len(total.scales), tensor.name
    whole = like(x, derived(name, "/of_each"), dims=(*x.dims[:-1], count * x.channels))
    joined = output_of(graph, concatenation_of([x] * count, whole), before=before)
    level, falls = (np.repeat(each, x.channels) for each in (total.thresholds, ~total.rising))
    written = derived(whole.name, "/add")
    threshold = Threshold(level.astype(np.float32), falls, written, derived(written, "/numbers"))
    bits = pack_signs(graph, joined, derived(name, "/levels"), threshold, before=before)
    counted = Counted(total.middle, tuple(total.scales.tolist()), tuple(total.rising.tolist()))
    bits.origin = then(tensor, counted, signs=joined.channels)
    return bits


def can_negate_channels(graph: Graph, bits: Tensor) -> bool:
    """True if every consumer of `bits`, perhaps after reshapes, is an LceBconv2d that does not pad with +1."""
    consumers = graph.consumers(bits)
    return bool(consumers) and not graph.is_output(bits) and all(_can_absorb(graph, c, bits) for c in consumers)


def negate_channels(graph: Graph, bits: Tensor, negative: Array) -> None:
    """Negates the filters of all consumers of `bits` in the channels where `negative` (bool [C]) is true."""
    bits.name += "/negated"
    bits.origin = then(bits, Negated("".join("01"[is_negative] for is_negative in negative.tolist())))
    for consumer in dict.fromkeys(graph.consumers(bits)):
        if consumer.name == "RESHAPE":
            words, words_out = bits.dims[-1], consumer.output.dims[-1]
            negate_channels(graph, consumer.output, np.tile(negative, words_out // words))
        else:
            _absorb(graph, consumer, negative)


def _can_absorb(graph: Graph, op: Op, bits: Tensor) -> bool:
    if op.name == "RESHAPE":
        words, words_out = bits.dims[-1], op.output.dims[-1]
        return words > 0 and words_out > 0 and words_out % words == 0 and can_negate_channels(graph, op.output)
    return op.name == LCE_BCONV_2D and op.inputs[0] is bits and not _pads_with_ones(op)


def _pads_with_ones(op: Op) -> bool:
    o = bconv_options(op)
    if o.pad_values == PadValues.ZERO or o.padding != Padding.SAME:
        return o.pad_values != PadValues.ZERO and o.padding is None
    return same_padding(op.input(0).dims[1:3], op.input(1).shape[1:3], o.strides, o.dilations) != ((0, 0), (0, 0))


def _absorb(graph: Graph, op: Op, negative: Array) -> None:
    words = op.input(1).array
    assert words is not None
    channels = channels_per_group(op)
    masks = pack_bits(negative.reshape(-1, channels))  # one row for each group
    flipped = words ^ np.repeat(masks, words.shape[0] // masks.shape[0], axis=0)[:, None, None, :]
    graph.set_input(op, 1, constant(op.input(1).name, flipped))
