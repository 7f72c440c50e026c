"""Small networks to whose times the costs are fitted. Each has one kind of layer, in one of many shapes.

If a layer's input and output have the same shape, the network repeats the layer with other weights. The repeated layer
then uses the caches as in a real network.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.costs.chain import RNG, Chain
from litebnn.contract import (
    Padding,
)
from litebnn.graph import constant

# A network repeats its layer until it has this number of bytes of weights, or this number of layers.
_ROW_BYTES, _ROW_LAYERS = 3 << 20, 6


def _layers(weight_bytes: int) -> int:
    return max(2, min(_ROW_LAYERS, _ROW_BYTES // max(weight_bytes, 1)))


SIZES = ((56, 64), (28, 128), (14, 256), (7, 512))
OTHER_SIZES = (
    (112, 32),
    (56, 128),
    (28, 64),
    (28, 256),
    (27, 192),
    (14, 512),
    (14, 96),
    (13, 384),
    (7, 1024),
    (7, 256),
)


def binary_networks() -> Iterator[tuple[str, bytes]]:
    """Networks with LceBconv2d, the op that packs its input, and the ops after it that the delegate claims."""
    for taps in (3, 1, 5):
        for size, channels in (*SIZES, *(OTHER_SIZES if taps < 5 else ())):
            yield from _same_shape(size, channels, taps)
    for size, few, many in ((56, 64, 256), (28, 64, 320), (28, 32, 128), (14, 64, 512), (14, 128, 384), (7, 64, 640)):
        for taps in (3, 1):
            chain = Chain(1, size, size, many)
            for _ in range(3):
                chain.pack().bconv(many, few, taps).pack().bconv(few, many, taps)
            yield f"bconv {taps}x{taps} {size}x{size}x{many}-{few}", chain.bytes()
    for size, channels in ((56, 64), (28, 128), (14, 256), (27, 96)):
        for taps in (3, 1):
            chain = Chain(1, size, size, channels).pack().bconv(channels, 2 * channels, taps, 2)
            yield f"bconv {taps}x{taps} / 2 {size}x{size}x{channels}", chain.bytes()
    for inputs, outputs in ((256, 1024), (1024, 1024), (4096, 1000), (9216, 4096), (4096, 4096)):
        yield f"bconv 1x1 1x1x{inputs}-{outputs}", Chain(1, 1, 1, inputs).pack().bconv(inputs, outputs, 1).bytes()
    for size, channels, outputs in ((6, 256, 4096), (7, 512, 1024)):  # the filter is as large as the image
        chain = Chain(1, size, size, channels).pack().bconv(channels, outputs, size, size)
        yield f"bconv {size}x{size} {size}x{size}x{channels}-{outputs}", chain.bytes()
    for size, channels in ((112, 64), (56, 64), (28, 128), (14, 256)):
        yield f"pack {size}x{size}x{channels}", Chain(1, size, size, channels).pack().bytes()
        yield f"unpack {size}x{size}x{channels}", Chain(1, size, size, channels).pack().unpack(channels).bytes()
        chain = Chain(1, size, size, channels).pack()
        yield f"max pool of signs {size}x{size}x{channels}", chain.max_pool_signs(3, 2).bytes()
        chain = Chain(1, size, size, channels).pack().bconv(channels, channels, 1).pool("MAX_POOL_2D", 3, 2)
        yield f"max pool {size}x{size}x{channels}", chain.bytes()
        chain = Chain(1, size, size, channels).pack().bconv(channels, channels, 1).pool("MAX_POOL_2D", 2, 1)
        yield f"max pool 2x2 {size}x{size}x{channels}", chain.bytes()


def _same_shape(size: int, channels: int, taps: int) -> Iterator[tuple[str, bytes]]:
    name = f"bconv {taps}x{taps} {size}x{size}x{channels}"
    count = _layers(channels * taps * taps * channels // 8)
    floats, signs = Chain(1, size, size, channels), Chain(1, size, size, channels).pack()
    for _ in range(count):
        floats.pack().bconv(channels, channels, taps)
        signs.bconv(channels, channels, taps, type="INT32")
    yield name, floats.bytes()
    yield f"{name}, signs", signs.bytes()
    if taps == 5:
        return
    sums, levels = Chain(1, size, size, channels), Chain(1, size, size, channels, type="INT8")
    for _ in range(count):
        before = sums.y
        sums.pack().bconv(channels, channels, taps).add(before)
        levels.pack().bconv(channels, channels, taps, type="INT8")
    yield f"{name}, sums", sums.bytes()
    yield f"{name}, int8", levels.bytes()
    if taps == 3:
        zeros = Chain(1, size, size, channels)
        for _ in range(count):
            zeros.pack().bconv(channels, channels, taps, zeros=True)
        yield f"{name}, zeros", zeros.bytes()


def other_networks() -> Iterator[tuple[str, bytes]]:
    """Networks with ops that the runtime computes itself, in floats and, for some ops, in int8 too."""
    for kind, type in (("float", "FLOAT32"), ("int8", "INT8")):
        yield from _convolutions(kind, type)
        yield from _narrow(kind, type)
        for inputs, outputs in ((256, 10), (512, 1000), (1024, 1000), (2048, 1000), (4096, 1000), (4096, 4096)):
            yield f"dense {kind} {inputs}-{outputs}", Chain(1, inputs, type=type).dense(outputs).bytes()
        for size, channels, taps, stride in (
            (112, 16, 3, 2),
            (56, 64, 3, 2),
            (56, 64, 3, 1),
            (28, 128, 3, 2),
            (14, 256, 3, 1),
            (7, 512, 3, 1),
        ):
            chain = Chain(1, size, size, channels, type=type)
            for _ in range(4 if stride == 1 else 1):
                chain.depthwise(taps, stride)
            yield f"depthwise {kind} {size}x{size}x{channels} / {stride}", chain.bytes()
        for size, channels, outputs, taps, stride in (
            *((8, 512, 256, 2, 2), (32, 128, 64, 2, 2), (64, 64, 32, 2, 2)),
            (4, 32, 16, 2, 2),
            *((7, 256, 256, 3, 2), (28, 128, 64, 3, 2), (16, 256, 128, 4, 2), (32, 64, 64, 4, 2), (16, 64, 21, 8, 4)),
        ):
            chain = Chain(1, size, size, channels, type=type).transposed_conv(outputs, taps, stride)
            yield f"transposed {kind} {taps}x{taps} / {stride} {size}x{size}x{channels}-{outputs}", chain.bytes()
    for size, channels in ((112, 64), (112, 8), (56, 64), (56, 320), (28, 128), (14, 256), (7, 512), (1, 1000)):
        yield from _elementwise(size, channels)
        floats, levels = Chain(1, size, size, channels), Chain(1, size, size, channels, type="INT8")
        shape, name = floats.y.shape, f"{size}x{size}x{channels}"
        yield f"QUANTIZE {name}", floats.builtin("QUANTIZE", [floats.y], shape, type="INT8").bytes()
        yield f"DEQUANTIZE {name}", levels.builtin("DEQUANTIZE", [levels.y], shape, type="FLOAT32").bytes()
    for size, channels in ((112, 64), (56, 64), (56, 128), (28, 128), (14, 256), (7, 512)):
        for name in ("MAX_POOL_2D", "AVERAGE_POOL_2D"):
            for taps, stride in ((3, 2), (2, 2)):
                title = f"{name} {taps}x{taps} / {stride} {size}x{size}x{channels}"
                yield title, Chain(1, size, size, channels).pool(name, taps, stride).bytes()
    for size, channels in ((7, 512), (7, 1024), (14, 256)):
        whole = Chain(1, size, size, channels)
        options: dict[str, Any] = {"filter_height": size, "filter_width": size, "padding": Padding.VALID}
        yield (
            f"average of {size}x{size}x{channels}",
            whole.builtin("AVERAGE_POOL_2D", [whole.y], (1, 1, 1, channels), **options).bytes(),
        )

    yield from _large()


def _large() -> Iterator[tuple[str, bytes]]:
    """Networks with tensors larger than the last-level cache, or with products of two computed matrices."""
    for inputs, outputs in ((512, 512), (2048, 1024), (4096, 4096)):
        chain = Chain(inputs, outputs)
        chain.builtin("RELU", [chain.y], (inputs, outputs))
        vector = constant("vector", RNG.standard_normal((1, inputs), np.float32))
        yield f"matmul {inputs}-{outputs}", chain.builtin("BATCH_MATMUL", [vector, chain.y], (1, outputs)).bytes()
    for name in ("ADD", "MUL"):
        chain = Chain(4096, 4096)
        for _ in range(2):
            chain.builtin(name, [chain.y, constant("factor", np.array(2, np.float32))], (4096, 4096))
        yield f"{name} 4096x4096", chain.bytes()
    signs, means = Chain(4096, 4096), Chain(4096, 4096)
    yield "SIGN 4096x4096", signs.builtin("SIGN", [signs.y], (4096, 4096)).bytes()
    axes = constant("axes", np.array([0, 1], np.int32))
    yield "MEAN 4096x4096", means.builtin("MEAN", [means.y, axes], ()).bytes()
    large = Chain(1, 4096)
    for _ in range(6):
        large.dense(4096)
    yield "dense float 4096-4096 in a row", large.bytes()


def _narrow(kind: str, type: str) -> Iterator[tuple[str, bytes]]:
    """Networks of convolutions with few channels, which leave most lanes of vectors unused."""
    for size, channels in ((112, 8), (56, 8), (56, 16), (28, 24)):
        for taps in (1, 3):
            chain = Chain(1, size, size, channels, type=type)
            for _ in range(_ROW_LAYERS):
                chain.conv(channels, taps)
            yield f"conv {kind} {taps}x{taps} {size}x{size}x{channels}", chain.bytes()


def _convolutions(kind: str, type: str) -> Iterator[tuple[str, bytes]]:
    bytes_each = 4 if type == "FLOAT32" else 1
    for taps in (1, 3):
        for size, channels in (*SIZES, (28, 64), (14, 128), (56, 32), (112, 16)):
            chain = Chain(1, size, size, channels, type=type)
            for _ in range(_layers(channels * channels * taps * taps * bytes_each)):
                chain.conv(channels, taps)
            yield f"conv {kind} {taps}x{taps} {size}x{size}x{channels}", chain.bytes()
    for size, few, many in ((56, 64, 128), (28, 128, 256), (14, 256, 512), (28, 160, 512), (14, 320, 640)):
        chain = Chain(1, size, size, few, type=type)
        chain.conv(many, 1).conv(few, 1)
        yield f"conv {kind} 1x1 {size}x{size}x{few}-{many}", chain.bytes()
    for size, channels, outputs, taps, stride in (
        (224, 3, 16, 3, 2),
        (224, 3, 64, 7, 2),
        (224, 3, 32, 3, 2),
        (224, 3, 64, 11, 4),
        (112, 3, 64, 3, 1),
        (112, 8, 32, 3, 2),
        (27, 64, 192, 5, 1),
    ):
        chain = Chain(1, size, size, channels, type=type).conv(outputs, taps, stride)
        yield f"conv {kind} {taps}x{taps} / {stride} {size}x{size}x{channels}-{outputs}", chain.bytes()


def _elementwise(size: int, channels: int) -> Iterator[tuple[str, bytes]]:
    shape, name = (1, size, size, channels), f"{size}x{size}x{channels}"
    for op in ("ADD", "MUL"):
        chain = Chain(*shape)
        for _ in range(3):
            chain.builtin(op, [chain.y, constant("factors", RNG.standard_normal(channels, np.float32))], shape)
        yield f"{op} {name}", chain.bytes()
    whole = Chain(*shape)
    for _ in range(3):
        whole.builtin("ADD", [whole.y, whole.x], shape)
    yield f"ADD of two {name}", whole.bytes()
    for op in ("RELU", "LOGISTIC", "SOFTMAX", "SIGN", "TANH"):
        options: dict[str, Any] = {"beta": 1.0} if op == "SOFTMAX" else {}
        chain = Chain(*shape)
        yield f"{op} {name}", chain.builtin(op, [chain.y], shape, **options).bytes()
    greater = Chain(*shape)
    greater.builtin("GREATER", [greater.y, constant("zero", np.array(0, np.float32))], shape, type="BOOL")
    yield f"GREATER {name}", greater.builtin("CAST", [greater.y], shape, type="FLOAT32").bytes()
    prelu = Chain(*shape)
    slopes = constant("slopes", RNG.standard_normal((1, 1, channels), np.float32))
    yield f"PRELU {name}", prelu.builtin("PRELU", [prelu.y, slopes], shape).bytes()
    for share in (1, 4):
        joined = Chain(*shape)
        first = joined.builtin("RELU", [joined.x], shape).y
        joined.builtin("CONCATENATION", [joined.x, *[first] * share], (*shape[:-1], (1 + share) * channels), axis=3)
        yield f"CONCATENATION {1 + share} {name}", joined.bytes()
    wide = Chain(*shape)
    amounts = constant("amounts", np.array([[0, 0], [0, 0], [0, 0], [2 * channels, 0]], np.int32))
    yield f"PAD of channels {name}", wide.builtin("PAD", [wide.y, amounts], (*shape[:-1], 3 * channels)).bytes()
    part = Chain(*shape)
    ends = [
        constant(f"end_{i}", np.array(end, np.int32))
        for i, end in enumerate(([0] * 4, [1, size, size, channels // 2], [1] * 4))
    ]
    yield f"STRIDED_SLICE {name}", part.builtin("STRIDED_SLICE", [part.y, *ends], (*shape[:-1], channels // 2)).bytes()
    padded = Chain(*shape)
    amounts = constant("amounts", np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    yield f"PAD {name}", padded.builtin("PAD", [padded.y, amounts], (1, size + 2, size + 2, channels)).bytes()
    flat = Chain(*shape)
    yield f"RESHAPE {name}", flat.reshape(1, math.prod(shape)).bytes()
    if size > 1:
        means = Chain(*shape)
        axes = constant("axes", np.array([1, 2], np.int32))
        yield f"MEAN {name}", means.builtin("MEAN", [means.y, axes], (1, channels)).bytes()
