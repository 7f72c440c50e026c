"""The four ops of binary networks, computed by the kernels of ops/micro."""

from __future__ import annotations

import math

import numpy as np

from litebnn.contract import (
    ACTIVATION_RANGES,
    MOST_VALUES,
    Activation,
    BConv2DOptions,
    BMaxPool2DOptions,
    Padding,
)
from litebnn.graph import Array, Op, Tensor
from litebnn.micro.choice import choose_kernel, instructions
from litebnn.micro.fixed_output import fixed_output
from litebnn.micro.pack import Geometry, Packed, pack_bconv2d
from litebnn.micro.program import (
    Argument,
    Axis,
    Call,
    Context,
    Data,
    Lowered,
    Read,
    Rows,
    Scratch,
    Struct,
    Symbol,
    Value,
    Write,
    constant_of,
    grid,
    refuse,
)

_OUTPUTS = {"INT32": "bits", "INT8": "int8", "FLOAT32": "float"}
# For each element type of a layer's output, the name of this kind of output in the table of costs (`choice.py`).
_COUNTED = {"bits": "bits", "int8": "int8", "float": "float32"}
_SIGNED = {"INT8": "int8", "FLOAT32": "float", "BOOL": "bool"}


def _image(tensor: Tensor, context: Context) -> tuple[int, int]:
    """The number of pixels of an image, and the number of channels of each pixel."""
    shape = context.shape(tensor)
    return int(np.prod(shape[:-1], dtype=np.int64)), shape[-1]


def lce_quantize(context: Context, op: Op) -> Lowered:
    """Lowers LceQuantize, which packs signs.

    The kernel writes the words of a pixel after it has read all the pixel's values, so output and input may share
    memory.
    """
    source = op.input(0)
    rows, channels = _image(source, context)
    zero_point: tuple[Argument, ...] = (_zero_point(source),) if source.type == "INT8" else ()
    function = f"litebnn_quantize_{_SIGNED[source.type]}"
    arguments = (Read(source), rows, channels, *zero_point, Write(op.output))
    return Lowered((Call(function, arguments, (), {"values": rows * channels, "rows": rows}),))


def _zero_point(tensor: Tensor) -> int:
    quantization = tensor.quantization
    return int(quantization.zero_point[0]) if quantization is not None and quantization.zero_point.size else 0


def lce_dequantize(context: Context, op: Op) -> Lowered:
    """Lowers LceDequantize, which unpacks signs to floats, int8 or booleans."""
    result = op.output
    rows, channels = _image(result, context)
    work = {"values": rows * channels, "rows": rows}
    if result.type == "FLOAT32":
        arguments: tuple[Argument, ...] = (Read(op.input(0)), rows, channels, Write(result))
        return Lowered((Call("litebnn_dequantize_float", arguments, (), work),))
    plus, minus = (1, 0) if result.type == "BOOL" else _levels_of_signs(result)
    arguments = (Read(op.input(0)), rows, channels, plus, minus, Write(result))
    return Lowered((Call("litebnn_dequantize_int8", arguments, (), work),))


def _levels_of_signs(tensor: Tensor) -> tuple[int, int]:
    scale, zero_point = grid(tensor)
    step = math.floor(1.0 / scale + 0.5)
    return min(127, zero_point + step), max(-128, zero_point - step)


def lce_bmaxpool_2d(context: Context, op: Op) -> Lowered:
    """Lowers LceBMaxPool2d, which computes the maximum of the signs in each window."""
    options = BMaxPool2DOptions.decode(op.custom_options)
    (images, *size, words), result = context.shape(op.input(0)), context.shape(op.output)
    taps = options.taps
    axes = [Axis(*axis).checked() for axis in zip(size, result[1:3], taps, options.strides, strict=True)]
    pads = [axis.padding if options.padding == Padding.SAME else 0 for axis in axes]
    fields: dict[str, Value] = {
        "words": words,
        **_pair("input", size),
        **_pair("output", result[1:3]),
        **_pair("filter", taps),
        **_pair("stride", [axis.stride for axis in axes]),
        "pad_top": pads[0],
        "pad_left": pads[1],
    }
    arguments = (Struct("litebnn_bmax_pool2d", fields), Read(op.input(0)), Write(op.output))
    outputs = int(np.prod(result, dtype=np.int64))
    work = {"outputs": outputs, "taps": outputs * taps[0] * taps[1]}
    return Lowered((Call("litebnn_bmax_pool2d_run", arguments, (), work, images),))


def _pair(name: str, sizes: tuple[int, ...] | list[int]) -> dict[str, int]:
    return {f"{name}_height": sizes[0], f"{name}_width": sizes[1]}


def geometry_of(op: Op) -> tuple[Geometry, BConv2DOptions]:
    """The geometry of a binary convolution, such as the sizes of input, output and filter, and its options."""
    options = BConv2DOptions.decode(op.custom_options)
    kernel, (_, *size, words), result = op.input(1), op.input(0).shape, op.output.shape
    taps = kernel.shape[1:3]
    sizes = zip(size, result[1:3], taps, options.strides, options.dilations, strict=True)
    axes = [Axis(*axis).checked() for axis in sizes]
    if (step := axes[0].dilation * size[1] * words) > MOST_VALUES:
        raise refuse(f"its taps are {step} words apart, expected at most {MOST_VALUES}")
    before = [axis.padding if options.padding == Padding.SAME else 0 for axis in axes]
    if options.explicit_padding is not None:
        before = [amounts[0] for amounts in options.explicit_padding]
    return (
        Geometry(
            **_pair("input", size),
            **_pair("output", result[1:3]),
            **_pair("filter", taps),
            **_pair("stride", [axis.stride for axis in axes]),
            **_pair("dilation", [axis.dilation for axis in axes]),
            channels_in=options.channels_in,
            channels_out=kernel.shape[0],
            groups=words // kernel.shape[3],
            pad_top=before[0],
            pad_left=before[1],
            zero_padding=options.pads_zeros,
        ),
        options,
    )


def lce_bconv_2d(context: Context, op: Op) -> Lowered:
    """Lowers LceBconv2d to a kernel: the cheapest for the layer's shape and the target, among the compact or the
    fast kernels.
    """
    geometry, options = geometry_of(op)
    name = _OUTPUTS[op.output.type]
    filters = constant_of(op.input(1), "filter")
    thresholds = constant_of(op.optional(4), "output_threshold") if name == "bits" else None
    kernel = choose_kernel(geometry, context.target, context.kernels, _COUNTED[name])
    try:
        packed = pack_bconv2d(kernel, geometry, filters, thresholds)
    except ValueError as error:
        raise refuse(str(error)) from None
    fields = _fields(op, geometry, options, packed)
    arguments = (
        Struct("litebnn_bconv2d", fields),
        Read(op.input(0)),
        Write(op.output),
        Scratch(packed.scratch_words),
        Rows(geometry.output_height),
    )
    images = op.output.shape[0]
    counted = "fixed" if fields["fixed_multiplier"] is not None else _COUNTED[name]
    work = {"instructions": images * round(instructions(geometry, context.target, kernel, counted))}
    return Lowered((Call(f"litebnn_bconv2d_{name}_rows", arguments, ("builtin/bconv2d_rows.c",), work, images),))


def _data(values: Array | None) -> Data | None:
    return None if values is None else Data(np.ascontiguousarray(values))


def _fields(op: Op, geometry: Geometry, options: BConv2DOptions, packed: Packed) -> dict[str, Value]:
    low, high = ACTIVATION_RANGES[Activation(options.fused_activation_function)]
    result = op.output
    factors = {
        name: np.broadcast_to(np.float32(default), geometry.channels_out)
        if op.optional(index) is None
        else constant_of(op.optional(index), name)
        for index, name, default in ((2, "multiplier", 1.0), (3, "bias", 0.0))
    }
    zero_point = 0
    if result.type == "INT8":
        scale, zero_point = grid(result)
        factors = {name: (values / np.float32(scale)).astype(np.float32) for name, values in factors.items()}
    clamp = int(max(low, 1 - 2**31)), int(min(high, 2**31 - 1))
    fixed = None
    if result.type == "INT8":
        fixed = fixed_output(geometry, factors["multiplier"], factors["bias"], clamp, zero_point)
    sizes = {name: getattr(geometry, name) for name in Geometry.__dataclass_fields__ if name != "zero_padding"}
    is_bits = result.type == "INT32"
    return {
        "kernel": Symbol(f"&litebnn_{packed.kernel}"),
        "weights": Data(packed.weights),
        "presets": Data(packed.presets),
        "depths": None if is_bits else Data(packed.depths),
        "row_class": None if packed.row_class is None else Data(packed.row_class),
        "column_class": None if packed.column_class is None else Data(packed.column_class),
        # If the kernel does not read the multipliers and biases of the layer, they are not written, because they would
        # only take flash.
        **{name: None if is_bits or fixed else _data(values) for name, values in factors.items()},
        **{f"fixed_{name}": _data(getattr(fixed, name, None)) for name in ("multiplier", "bias", "shift")},
        "planes": packed.planes,
        "window_words": packed.window_words,
        "tap_bits": packed.tap_bits,
        "clamp_min": clamp[0],
        "clamp_max": clamp[1],
        "output_zero_point": zero_point,
        **sizes,
    }
