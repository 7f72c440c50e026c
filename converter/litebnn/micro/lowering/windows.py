"""Lowers the runtime's own ops with a window: convolutions, dense layers and pools."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from litebnn.contract import Activation, Padding
from litebnn.graph import Op, Tensor
from litebnn.micro.fixed_point import quantized_multiplier, rounded
from litebnn.micro.program import (
    Axis,
    Call,
    Context,
    Data,
    Lowered,
    Read,
    Rows,
    Struct,
    Value,
    Write,
    check_types,
    constant_of,
    grid,
    refuse,
)
from litebnn.micro.reference import dense_rounds_once

LARGEST = float(np.finfo(np.float32).max)
_CLAMPS: Mapping[int, tuple[float, float]] = {
    Activation.NONE: (-math.inf, math.inf),
    Activation.RELU: (0.0, math.inf),
    Activation.RELU_N1_TO_1: (-1.0, 1.0),
    Activation.RELU6: (0.0, 6.0),
}


def clamp_of(op: Op) -> tuple[float, float]:
    """The range of real values to which an op's fused activation clamps."""
    activation = getattr(op.options, "fused_activation_function", Activation.NONE)
    if activation not in _CLAMPS:
        names = ", ".join(Activation(kind).name for kind in _CLAMPS)
        raise refuse(f"its fused activation is number {activation}, expected {names}")
    return _CLAMPS[activation]


def range_of(op: Op) -> dict[str, Value]:
    """The range to which an op's fused activation clamps, as levels of an int8 output or as floats. The keys of
    the result are fields of a C structure.
    """
    low, high = clamp_of(op)
    if op.output.type == "FLOAT32":
        return {"low": max(low, -LARGEST), "high": min(high, LARGEST)}
    scale, zero_point = grid(op.output)
    lowest = -128 if low == -math.inf else max(-128, zero_point + rounded(float(np.float32(low) / np.float32(scale))))
    highest = 127 if high == math.inf else min(127, zero_point + rounded(float(np.float32(high) / np.float32(scale))))
    return {"low": lowest, "high": highest}


def window_of(
    context: Context, op: Op, filter_size: tuple[int, ...], dilation: tuple[int, int] = (1, 1)
) -> dict[str, int]:
    """The fields of the C structure `litebnn_window` for images [1, height, width, channels]."""
    shape, result = context.shape(op.input(0)), context.shape(op.output)
    strides = op.options.stride_h, op.options.stride_w
    rows, columns = (
        Axis(*axis).checked() for axis in zip(shape[1:3], result[1:3], filter_size, strides, dilation, strict=True)
    )
    return _window(shape[1:], result[2:], rows, columns, op.options.padding == Padding.SAME)


def _window(
    shape: Sequence[int], result: Sequence[int], rows: Axis, columns: Axis, is_padded: bool = False
) -> dict[str, int]:
    return {
        **dict(zip(("input_height", "input_width", "channels_in"), shape, strict=True)),
        **dict(zip(("output_width", "channels_out"), result, strict=True)),
        "filter_height": rows.taps,
        "filter_width": columns.taps,
        "stride_height": rows.stride,
        "stride_width": columns.stride,
        "dilation_height": rows.dilation,
        "dilation_width": columns.dilation,
        "pad_top": rows.padding if is_padded else 0,
        "pad_left": columns.padding if is_padded else 0,
    }


def conv_2d(context: Context, op: Op) -> Lowered:
    """Lowers CONV_2D, with groups if the filter has fewer channels than the input."""
    kernel = op.input(1)
    filter_shape = kernel.shape
    dilation = op.options.dilation_h_factor, op.options.dilation_w_factor
    channels = context.shape(op.input(0))[3]
    if channels % filter_shape[3] or filter_shape[0] % (channels // filter_shape[3]):
        raise refuse(f"its filter of {list(filter_shape)} does not fit {channels} input channels")
    window = window_of(context, op, filter_shape[1:3], dilation)
    return _convolution(context, op, "conv2d", window, filter_shape[3], context.shape(op.output)[1])


def fully_connected(context: Context, op: Op) -> Lowered:
    """Lowers FULLY_CONNECTED as a convolution of 1x1 over an image of one row."""
    channels_out, channels = op.input(1).shape
    pixels = context.count(op.input(0)) // channels
    if getattr(op.options, "weights_format", 0):
        raise refuse("its weights are shuffled, expected the default format")
    window = _window((1, pixels, channels), (pixels, channels_out), Axis(1, 1, 1, 1), Axis(pixels, pixels, 1, 1))
    return _convolution(context, op, "conv2d", window, channels, 1)


def depthwise_conv_2d(context: Context, op: Op) -> Lowered:
    """Lowers DEPTHWISE_CONV_2D."""
    filter_size, channels_out = op.input(1).shape[1:3], op.input(1).shape[3]
    if channels_out % context.shape(op.input(0))[3]:
        raise refuse(f"its filter of {list(op.input(1).shape)} does not fit its input channels")
    dilation = op.options.dilation_h_factor, op.options.dilation_w_factor
    window = window_of(context, op, filter_size, dilation)
    return _convolution(context, op, "depthwise", window, 1, context.shape(op.output)[1])


def _convolution(
    context: Context, op: Op, function: str, window: dict[str, int], group_channels: int, rows: int
) -> Lowered:
    check_types(op, "FLOAT32", "INT8")
    kernel, bias, kind = op.input(1), op.optional(2), op.output.type
    weights = constant_of(kernel, "filter")
    if not op.input(0).type == kernel.type == kind:
        raise refuse(f"its input is {op.input(0).type}, its filter {kernel.type}, its output {kind}: expected one type")
    added = None if bias is None else constant_of(bias, "bias")
    if added is not None and added.dtype != (np.float32 if kind == "FLOAT32" else np.int32):
        raise refuse(f"its bias is {added.dtype}, expected {'float32' if kind == 'FLOAT32' else 'int32'}")
    fields: dict[str, Value] = {
        "window": window,
        "group_channels": group_channels,
        "weights": Data(weights),
        "bias": None if added is None else Data(added),
        **({} if kind == "FLOAT32" else _int8_fields(op, kernel, len(weights) if function == "conv2d" else -1)),
        "range": range_of(op),
    }
    name = "float" if kind == "FLOAT32" else "int8"
    outputs = context.count(op.output)
    macs = outputs * weights.size // window["channels_out"]
    arguments = (Struct(f"litebnn_conv2d_{name}", fields), Read(op.input(0)), Write(op.output), Rows(rows))
    work = {"macs": macs, "outputs": outputs, "runs": outputs * _runs(window, group_channels, function)}
    images = 1 if op.name == "FULLY_CONNECTED" else context.shape(op.output)[0]
    source = f"builtin/convolution_{name}.c"
    return Lowered((Call(f"litebnn_{function}_{name}_rows", arguments, (source,), work, images),))


def _runs(window: dict[str, int], group_channels: int, function: str) -> int:
    """The number of inner loops that compute one output value. Each inner loop has a fixed cost."""
    is_whole = group_channels == window["channels_in"] and window["dilation_width"] == 1
    return window["filter_height"] * (1 if function == "conv2d" and is_whole else window["filter_width"])


def _int8_fields(op: Op, kernel: Tensor, channels: int) -> dict[str, Value]:
    """Multipliers, shifts and zero points of an int8 layer as fields. The filter has one scale, or one for each
    channel."""
    channels = op.input(1).shape[-1] if channels < 0 else channels
    (in_scale, in_zero), (out_scale, out_zero) = grid(op.input(0)), grid(op.output)
    quantization = kernel.quantization
    if quantization is None or quantization.scale.size not in (1, channels):
        raise refuse(f'"{kernel.name}" has no scale, or not one for each of {channels} channels')
    scales = np.broadcast_to(quantization.scale.astype(np.float64), (channels,))
    zero_points = np.unique(quantization.zero_point)
    if zero_points.size > 1 or (op.name != "FULLY_CONNECTED" and zero_points.any()):
        raise refuse(f'"{kernel.name}" has the zero points {zero_points.tolist()}, expected 0')
    pairs = [quantized_multiplier(in_scale * scale / out_scale) for scale in scales.tolist()]
    return {
        "multipliers": Data(np.array([multiplier for multiplier, _ in pairs], np.int32)),
        "shifts": Data(np.array([shift for _, shift in pairs], np.int8)),
        "input_zero_point": in_zero,
        "filter_zero_point": int(zero_points[0]) if zero_points.size else 0,
        "output_zero_point": out_zero,
        "rounds_once": int(op.name == "FULLY_CONNECTED" and dense_rounds_once()),
    }


def pool_2d(context: Context, op: Op) -> Lowered:
    """Lowers MAX_POOL_2D and AVERAGE_POOL_2D."""
    check_types(op, "FLOAT32", "INT8")
    if op.input(0).type != op.output.type:
        raise refuse(f"its input is {op.input(0).type} and its output {op.output.type}: expected one type")
    if op.output.type == "INT8" and grid(op.input(0)) != grid(op.output):
        raise refuse("its input and output have two scales, expected one")
    name = "float" if op.output.type == "FLOAT32" else "int8"
    size = op.options.filter_height, op.options.filter_width
    fields: dict[str, Value] = {"window": window_of(context, op, size), "range": range_of(op)}
    function = f"litebnn_{'max' if op.name == 'MAX_POOL_2D' else 'average'}_pool_{name}_rows"
    rows = Rows(context.shape(op.output)[1])
    outputs = context.count(op.output)
    work = {"outputs": outputs, "taps": outputs * size[0] * size[1]}
    arguments = (Struct(f"litebnn_pool_{name}", fields), Read(op.input(0)), Write(op.output), rows)
    return Lowered((Call(function, arguments, ("builtin/pool.c",), work, context.shape(op.output)[0]),))
