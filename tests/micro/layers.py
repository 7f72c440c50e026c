"""Layers with random constants and their bit-exact outputs, for ops/micro on this machine and on boards."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from bench.micro.source import Case
from litebnn.micro.pack import Geometry, pack_bconv2d
from tests.support import lce_models, reference

CLAMPS = {0: (-(2**31) + 1, 2**31 - 1), 1: (0, 2**31 - 1), 2: (-1, 1), 3: (0, 6)}


def geometry_of(conv: lce_models.Conv) -> Geometry:
    _, height, width, channels = conv.input_shape
    windows = [
        reference.axis_window(
            conv.input_shape[1 + i],
            conv.filter_size[i],
            conv.strides[i],
            conv.dilations[i],
            conv.padding[i] if isinstance(conv.padding, tuple) else conv.padding,
        )
        for i in (0, 1)
    ]
    return Geometry(
        *(height, width, channels, windows[0][0], windows[1][0], conv.channels_out, conv.groups),
        *(*conv.filter_size, *conv.strides, *conv.dilations, windows[0][1], windows[1][1], conv.pad_values == 0),
    )


def expected_of(conv: lce_models.Conv, words: Any, multiplier: Any, bias: Any) -> Any:
    """The expected output of a layer, bit for bit: exact sums, then the float operations in the order that all
    implementations use.
    """
    if conv.output == "packed":
        return conv.compute(words).view(np.uint32)
    plain = replace(conv, output="float32", multiplier=False, bias=False)
    values = plain.compute(words) * multiplier + bias
    assert values.dtype == np.float32
    if conv.output == "float32":
        return values
    clamped = np.clip(values, np.float32(-128 - conv.zero_point), np.float32(127 - conv.zero_point))
    return (reference.round_half_away(clamped) + conv.zero_point).astype(np.int8)


def case_of(conv: lce_models.Conv, kernel: str) -> Case:
    """A layer in the form that a kernel reads, with the expected output for one image."""
    words, constants = conv.random_input(1), conv.constants()
    scale = np.float32(conv.scale if conv.output == "int8" else 1)
    defaults = {"multiplier": 1, "bias": 0}
    multiplier, bias = (
        np.full(conv.channels_out, default, np.float32) if values is None else values
        for values, default in ((constants[f"post_activation_{name}"], default) for name, default in defaults.items())
    )
    multiplier, bias = multiplier / scale, bias / scale
    geometry = geometry_of(conv)
    packed = pack_bconv2d(kernel, geometry, constants["filter"], constants["output_threshold"])
    expected = expected_of(conv, words, multiplier, bias)[0]
    clamp = CLAMPS[conv.activation]
    return Case(kernel, geometry, packed, words[0], expected, multiplier, bias, clamp, conv.zero_point)


OUTPUTS = ("packed", "int8", "float32")
# Layers with various windows and paddings, and numbers of channels that do and do not fill whole words.
LAYERS = [
    lce_models.Conv((1, 5, 6, 64), 40),
    lce_models.Conv((1, 4, 5, 20), 33, (2, 3), strides=(2, 1), pad_values=0, activation=1),
    lce_models.Conv((1, 6, 4, 96), 12, (3, 3), groups=3, dilations=(2, 1), pad_values=0),
    lce_models.Conv((1, 3, 3, 32), 160, (1, 1), padding=reference.VALID, activation=3),
    lce_models.Conv((1, 1, 2, 300), 10, (1, 1), padding=reference.VALID),
    lce_models.Conv((1, 7, 5, 128), 64, (5, 3), padding=((1, 0), (3, 2)), pad_values=0),
]
RANDOM_LAYERS = [
    replace(conv, output=output, seed=seed) for seed, (conv, output) in enumerate(product(LAYERS, OUTPUTS))
]
