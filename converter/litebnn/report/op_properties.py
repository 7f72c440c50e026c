"""Properties of an op in the terms of the reports: precision, shapes, and fused operations."""

from __future__ import annotations

import math
from collections.abc import Mapping

from litebnn.contract import (
    CUSTOM_OPS,
    LCE_BCONV_2D,
    LCE_BMAXPOOL_2D,
    Activation,
    BMaxPool2DOptions,
    decode_options,
)
from litebnn.graph import Graph, Op, Tensor, bits_of_type, facts
from litebnn.rules.build.bconv import bconv_options, channels_per_group

BITS = "bits"
_TYPES = {"FLOAT32": "float"}

Channels = Mapping[Tensor, int]
"""The number of channels of each tensor of packed signs in a graph."""


def _is_plain(op: Op) -> bool:
    """True if an op writes floats with no activation or a RELU, which the delegate requires of additions and pools."""
    return op.output.type == "FLOAT32" and _activation(op) in (Activation.NONE, Activation.RELU)


def _same_shapes(op: Op) -> bool:
    return op.input(0).shape == op.input(1).shape


def fused_additions(graph: Graph) -> dict[Op, Op]:
    """The additions that litebnn's delegate fuses, each with its binary convolution."""
    return {op: conv for op in graph.ops if (conv := convolution_that_adds(graph, op)) is not None}


def convolution_that_adds(graph: Graph, op: Op) -> Op | None:
    """The binary convolution into which the delegate fuses an addition; None if there is none.

    The convolution's float output must have the shape of the sum, and no other consumer. If both addends are such
    convolutions, the later one is chosen.
    """
    if op.name != "ADD" or not _is_plain(op) or not _same_shapes(op):
        return None
    producers = [producer for producer in map(graph.producer, op.inputs) if producer is not None]
    found = [each for each in producers if each.name == LCE_BCONV_2D and graph.sole_consumer(each.output) is op]
    return max(found, key=graph.ops.index) if len(found) > 1 else next(iter(found), None)


def fused_in(op: Op, additions: Mapping[Op, Op]) -> tuple[str, ...]:
    """The operations that are fused into an op, such as RELU or scale."""
    if op.name == LCE_BCONV_2D:
        return tuple(_fused_in_bconv(op, additions))
    bias = facts(op).constants[1:]
    has_bias = any(op.optional(index) is not None for index in bias)
    activation = _activation(op)
    return ("bias",) * has_bias + ((activation.name,) if activation else ())


def _fused_in_bconv(op: Op, additions: Mapping[Op, Op]) -> list[str]:
    activation = Activation(bconv_options(op).fused_activation_function)
    fused = [activation.name] if activation else []
    if op.output.type == "INT32":
        return [*fused, "thresholds"]
    scale, bias = (op.optional(index) for index in (2, 3))
    fused += ["scale"] * (scale is not None) + ["bias"] * (bias is not None)
    addition = next((addition for addition, conv in additions.items() if conv is op), None)
    if addition is not None:
        fused += ["ADD", *([_activation(addition).name] if _activation(addition) else [])]
    return fused


def _activation(op: Op) -> Activation:
    number = getattr(op.options, "fused_activation_function", 0)
    return Activation(number) if number in tuple(Activation) else Activation.NONE


def layer_name(name: str) -> str:
    """The name of a layer, which is taken from a tensor's name. Exporters join the names of all fused ops in a
    tensor's name.
    """
    parts = name.split(";")
    return ([part for part in parts if names_layer(part)] or parts[:1])[-1]


def names_layer(part: str) -> bool:
    """True if a part of a tensor's name is that of a layer with weights."""
    return any(kind in part.lower() for kind in ("conv", "dense", "matmul"))


def short_name(name: str) -> str:
    """The name of a layer, with at most 40 characters."""
    name = layer_name(name)
    return name if len(name) <= 40 else "…" + name[-39:]


def type_of(tensor: Tensor, channels: Channels) -> str:
    """A tensor's type: "bits", "float", "int8", or TFLite's name in lower case."""
    return BITS if tensor in channels else _TYPES.get(tensor.type, tensor.type.lower())


def shape_of(tensor: Tensor, channels: Channels) -> tuple[int, ...]:
    """The shape of a tensor in which the last axis is the number of channels, even for packed signs."""
    return (*tensor.shape[:-1], channels[tensor]) if tensor in channels else tensor.shape


def bytes_of(tensor: Tensor) -> int:
    """The size of a tensor in memory, in bytes. It is the size of the stored data, or is computed from the shape, if
    the shape is known."""
    if tensor.is_constant:
        assert tensor.buffer.data is not None
        return tensor.buffer.data.size
    return math.prod(tensor.shape) * bits_of_type(tensor.type) // 8


def data_of(op: Op) -> Tensor | None:
    """The input with an op's data. For a layer, this is the input that is neither weights nor bias. If it is constant,
    the first computed input is returned. For other ops it is the first computed input, or the first input.
    """
    inputs = [tensor for tensor in (op.optional(facts(op).data), *op.inputs) if tensor is not None]
    return next((tensor for tensor in inputs if not tensor.is_constant), inputs[0] if inputs else None)


def precision_of(op: Op, channels: Channels) -> str:
    """The precision of an op: "binary", "int8", "float", or the type of the data that it moves."""
    data = data_of(op)
    if op.name in CUSTOM_OPS or data in channels:
        return "binary"
    return "" if data is None else type_of(data, channels)


def filter_shape(op: Op) -> tuple[int, ...]:
    """Height, width and input channels of an op's window, or height and width for a pool; empty for ops without a
    window."""
    if op.name == LCE_BCONV_2D:
        return (*op.input(1).shape[1:3], channels_per_group(op))
    if op.name == LCE_BMAXPOOL_2D:
        options = decode_options(LCE_BMAXPOOL_2D, op.custom_options)
        assert isinstance(options, BMaxPool2DOptions)
        return options.filter_height, options.filter_width
    if hasattr(op.options, "filter_height"):
        return op.options.filter_height, op.options.filter_width
    if facts(op).layer and len(op.input(1).shape) == 4:
        return op.input(1).shape[1:]
    return ()
