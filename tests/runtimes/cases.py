"""Writes the suite's cases: models to run with inputs and outputs, and models to refuse with the message to expect.

Usage:

    python -m tests.runtimes.cases FOLDER

Only writing needs the .tflite schema for Python; running the cases does not. Each model NAME.tflite has a file NAME.npz
with `input`, `expected` and `tolerance`, or a file NAME.json with the `message`, a regular expression, and the `op`.
"""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from tests.support import lce_models, reference
from tests.support.lce_models import Case, Conv, Graph

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
INT32_MAX = 2**31 - 1


@dataclass
class Refusal:
    """A model that every runtime must refuse with a given message."""

    name: str
    model: bytes
    op: str
    message: str


def golden() -> Iterator[Case]:
    """Yields the models that Larq Compute Engine wrote. The int8 model is left out, because the runtimes' own ops
    give different results for it.
    """
    for path in sorted(GOLDEN.glob("*.lce.tflite")):
        name = path.name.removesuffix(".lce.tflite")
        if name == "int8_qat":
            continue
        recorded = np.load(path.with_name(f"{name}.npz"))
        tolerance = 1e-4 * float(np.abs(recorded["lce"]).max())
        yield Case(f"golden_{name}", path.read_bytes(), recorded["input"], recorded["lce"], tolerance)


def random_convs(count: int) -> Iterator[Case]:
    """Yields convolutions with random parameters."""
    rng = np.random.default_rng(1)

    def pick(low: int, high: int) -> int:
        return int(rng.integers(low, high + 1))

    for number in range(count):
        groups = pick(2, 3) if number % 4 == 0 else 1
        output = ("float32", "int8", "packed")[number % 3]
        channels_in = 32 * groups * pick(1, 2) if groups > 1 else pick(1, 150)
        if output == "packed":
            channels_in += channels_in % 2
        filter_size, dilations = (pick(1, 4), pick(1, 4)), (pick(1, 3), pick(1, 3))
        padding = pick(0, 1)
        reach = [
            (k - 1) * d + 1 if padding == reference.VALID else 1 for k, d in zip(filter_size, dilations, strict=True)
        ]
        yield Conv(
            (pick(1, 3), reach[0] + pick(0, 6), reach[1] + pick(0, 6), channels_in),
            groups * pick(1, 50),
            filter_size,
            groups,
            (pick(1, 3), pick(1, 3)),
            dilations,
            padding,
            pick(0, 1),
            pick(0, 3),
            output,
            bool(pick(0, 3)),
            bool(pick(0, 3)),
            seed=number,
        ).case(f"conv_{number:02d}_{output}")


def edge_convs() -> Iterator[Case]:
    """Yields convolutions that Larq Compute Engine refuses, with options at the ends of their ranges, or with changing
    batch sizes."""
    yield Conv(pad_values=0, activation=1).case("same_zero_with_activation")
    yield Conv(pad_values=0, output="packed").case("same_zero_packed")
    yield Conv(multiplier=False, bias=False).case("absent_inputs")
    yield Conv(changed={"stride_height": INT32_MAX}, strides=(INT32_MAX, 1)).case("largest_stride_height")
    yield Conv(changed={"stride_width": INT32_MAX}, strides=(1, INT32_MAX)).case("largest_stride_width")
    yield Conv(filter_size=(1, 1), dilations=(INT32_MAX, INT32_MAX)).case("largest_dilation")
    yield Conv(output="packed").case("batch_of_four", batch=4)


def other_ops() -> Iterator[Case]:
    """Yields models of LceQuantize, LceDequantize, LitebnnUnpackWeights and LceBMaxPool2d with every type."""
    rng = np.random.default_rng(2)
    for channels in (1, 31, 32, 33, 100):
        shape = (2, 3, channels)
        values = {
            "float32": rng.normal(size=shape).astype(np.float32),
            "int8": rng.integers(-128, 128, shape).astype(np.int8),
            "bool": rng.random(shape) < 0.5,
        }
        for dtype, x in values.items():
            scale, zero_point = (0.3, -5) if dtype == "int8" else (None, 0)
            model = lce_models.quantize_model(shape, dtype, scale, zero_point)
            words = reference.lce_quantize(x, zero_point)
            yield Case(f"quantize_{dtype}_{channels}", model, x, words)
            model = lce_models.dequantize_model(shape, dtype, scale, zero_point)
            expected = reference.lce_dequantize(words, channels, np.dtype(dtype), scale or 1.0, zero_point)
            yield Case(f"dequantize_{dtype}_{channels}", model, words, expected)
    for shape in ((5, 3, 3, 7), (1, 3, 3, 40)):
        rows, x = (shape[0], int(np.prod(shape[1:]))), rng.standard_normal(shape).astype(np.float32)
        signs, zeros = (reference.pack(rng.choice([-1, 1], rows)) for _ in range(2))
        scales = rng.standard_normal(shape[-1] if shape[0] == 1 else shape[0]).astype(np.float32)
        model = lce_models.unpack_weights_model(signs, scales, zeros, shape)
        expected = x + reference.unpack_weights(signs, scales, zeros, shape)
        yield Case(f"unpack_weights_{shape[0]}", model, x, expected)
    for number, padding in enumerate((reference.SAME, reference.VALID)):
        shape, filter_size, strides = (2, 7, 8, 3), (3, 2), (2, 3)
        words = rng.integers(-(2**31), 2**31, shape).astype(np.int32)
        model = lce_models.bmaxpool_model(shape, filter_size, strides, padding)
        expected = reference.lce_bmaxpool2d(words, filter_size, strides, padding)
        yield Case(f"bmaxpool_{number}", model, words, expected)


def chains() -> Iterator[Case]:
    """Yields models with all ops in sequence. They are made for one input size and run with another size."""
    for size in (12, 7):
        model, x, expected = lce_models.chain_model(size=size)
        yield Case(f"chain_{size}", model, x, expected)


def shortcuts(name: str, activation: int) -> Case:
    """A model of binary layers with residual additions, all of which the delegate claims. The delegate fuses an
    addition into a binary layer if only this addition reads the layer's output."""
    shape = (2, 4, 5, 40)
    graph = Graph()
    options = schema.AddOptionsT()
    options.fusedActivationFunction = activation

    def add(a: int, b: int) -> int:
        total = graph.tensor(shape, "float32", name="sum")
        graph.builtin("ADD", [a, b], [total], options)
        return total

    source = tensor = graph.tensor(shape, "float32", name="input")
    x = value = np.random.default_rng(6).normal(0, 10, shape).astype(np.float32)
    least = 0 if activation else -np.inf
    for layer in range(4):
        conv = Conv(shape, shape[3], seed=layer)
        packed = graph.tensor((*shape[:3], 2))
        graph.custom("LceQuantize", [tensor], [packed])
        convolved, computed = conv.add_to(graph, packed), conv.compute(reference.lce_quantize(value))
        tensor, value = add(convolved, tensor), np.maximum(computed + value, least)
        if layer % 2:
            tensor, value = add(tensor, convolved), np.maximum(value + computed, least)
    expected = value.astype(np.float32)
    return Case(name, graph.build([source], [tensor]), x, expected, conv.tolerance(expected))


def int8_layers() -> Iterator[Case]:
    """Yields models of an int8 CONV_2D, a binary layer, the int8 ADD of both and an AVERAGE_POOL_2D, all of which the
    delegate claims.

    The quantization scales make every result a whole number of levels, because runtimes round in different ways.
    """
    for channels in (1, 3, 4):
        rng, shape = np.random.default_rng(channels), (2, 6, 8, 64)
        # The inputs have even distances from the zero point, and the biases are even. Every sum is therefore even, and
        # half of it is exact.
        x = (3 + 2 * rng.integers(-3, 4, (*shape[:3], channels))).astype(np.int8)
        weights = rng.integers(-1, 2, (shape[3], 1, 1, channels)).astype(np.int8)
        bias = (2 * rng.integers(-5, 6, shape[3])).astype(np.int32)
        image = ((x.astype(np.int64) - 3) @ weights[:, 0, 0].T.astype(np.int64) + bias) // 2
        conv = Conv(shape, shape[3], output="int8", multiplier=False, bias=False, scale=16.0, zero_point=-7)
        convolved = conv.compute(reference.lce_quantize((image + 5).astype(np.int8), 5)).astype(np.int64) + 7
        # The sums are even, so that the average of two sums is a whole number.
        sums = 2 * (image + convolved)
        assert np.abs(sums).max() < 127
        expected = (sums[:, :, ::2] + sums[:, :, 1::2]) // 2 - 1

        graph = Graph()
        source = graph.tensor(x.shape, "int8", name="input", scale=8.0, zero_point=3)
        constants = [
            graph.tensor(weights.shape, "int8", weights, name="filter", scale=1.0),
            graph.tensor(bias.shape, "int32", bias, name="bias", scale=8.0),
        ]
        stem = graph.tensor(shape, "int8", name="stem", scale=16.0, zero_point=5)
        options = schema.Conv2DOptionsT()
        options.strideH = options.strideW = options.dilationHFactor = options.dilationWFactor = 1
        graph.builtin("CONV_2D", [source, *constants], [stem], options)
        packed = graph.tensor((*shape[:3], 2))
        graph.custom("LceQuantize", [stem], [packed])
        total = graph.tensor(shape, "int8", name="sum", scale=8.0, zero_point=-1)
        graph.builtin("ADD", [conv.add_to(graph, packed), stem], [total], schema.AddOptionsT())
        output = graph.tensor(expected.shape, "int8", name="output", scale=8.0, zero_point=-1)
        options = schema.Pool2DOptionsT()
        options.filterHeight = options.strideH = 1
        options.filterWidth = options.strideW = 2
        options.padding = schema.Padding.VALID
        graph.builtin("AVERAGE_POOL_2D", [total], [output], options)
        yield Case(f"int8_layers_{channels}", graph.build([source], [output]), x, expected.astype(np.int8))


def pooled() -> Iterator[Case]:
    """Yields models with the runtime's own MAX_POOL_2D after a convolution."""
    for number, (filter_size, strides, padding, activation) in enumerate(
        [((2, 2), (1, 1), reference.VALID, 0), ((3, 2), (2, 1), reference.SAME, 1)]
    ):
        conv = Conv(channels_out=45)
        graph = Graph()
        source = graph.tensor((1, 5, 6, 2), name="input")
        words = conv.random_input()
        expected = reference.max_pool2d(conv.compute(words), filter_size, strides, padding)
        if activation:
            expected = np.maximum(expected, 0)
        output = graph.tensor(expected.shape, "float32", name="pooled")
        graph.max_pool(conv.add_to(graph, source), output, filter_size, strides, padding, activation)
        yield Case(f"pooled_{number}", graph.build([source], [output]), words, expected, conv.tolerance(expected))


def gated() -> Iterator[Case]:
    """Yields models of convolutions whose outputs are multiplied by a function of their inputs, like squeeze-and-excite
    blocks."""
    for number, (activation, leaks, adds, first) in enumerate(
        [(0, True, True, False), (0, True, False, True), (1, False, True, True), (0, False, True, False)]
    ):
        conv = Conv((2, 5, 6, 64), channels_out=64, seed=number)
        shape, pixel = conv.output_shape, (2, 1, 1, 64)
        graph = Graph()
        source = graph.tensor((2, 5, 6, 2), name="input")
        words = conv.random_input()
        convolved, computed = conv.add_to(graph, source), conv.compute(words).astype(np.float64)

        unpacked = reference.lce_dequantize(words, 64, np.dtype("float32"), 1.0, 0)
        signs = graph.tensor(shape, "float32")
        graph.custom("LceDequantize", [source], [signs])
        mean, gate = graph.tensor(pixel, "float32"), graph.tensor(pixel, "float32")
        options = schema.Pool2DOptionsT()
        options.filterHeight, options.filterWidth = shape[1:3]
        options.strideH = options.strideW = options.padding = 1
        graph.builtin("AVERAGE_POOL_2D", [signs], [mean], options)
        graph.builtin("LOGISTIC", [mean], [gate])
        expected = computed / (1 + np.exp(-unpacked.mean(axis=(1, 2), keepdims=True)))
        tensor = graph.tensor(shape, "float32", name="gated")
        options = schema.MulOptionsT()
        options.fusedActivationFunction = activation
        graph.builtin("MUL", [gate, convolved] if first else [convolved, gate], [tensor], options)
        if activation:
            expected = np.maximum(expected, 0)
        if leaks:
            alpha = np.random.default_rng(number).normal(0, 1, (1, 1, shape[3])).astype(np.float32)
            leaked = graph.tensor(shape, "float32", name="leaked")
            graph.builtin("PRELU", [tensor, graph.constant(alpha)], [leaked])
            tensor, expected = leaked, np.where(expected < 0, expected * alpha, expected)
        if adds:
            total = graph.tensor(shape, "float32", name="sum")
            graph.builtin("ADD", [convolved, tensor] if first else [tensor, convolved], [total], schema.AddOptionsT())
            tensor, expected = total, expected + computed
        packed, signs = graph.tensor((*shape[:3], 2)), graph.tensor(shape, "float32", name="signs")
        graph.custom("LceQuantize", [tensor], [packed])
        graph.custom("LceDequantize", [packed], [signs])
        output = graph.tensor(shape, "float32", name="output")
        graph.builtin("SUB", [tensor, signs], [output], schema.SubOptionsT())
        # Values near 0 are moved away from 0, because rounding could give them either sign.
        expected = (expected - np.where(expected < 0, -1, 1)).astype(np.float32)
        yield Case(f"gated_{number}", graph.build([source], [output]), words, expected, 10 * conv.tolerance(expected))


def delayed() -> Case:
    """A model of two blocks: a downsampling block and a gated one. In both, the convolution's only consumer waits
    for ops of the runtime.
    """
    first, second = (Conv((1, size, size, 64), 64, strides=(stride, stride)) for size, stride in ((8, 2), (4, 1)))
    shape = first.output_shape
    graph = Graph()
    schemas = {"AVERAGE_POOL_2D": schema.Pool2DOptionsT, "ADD": schema.AddOptionsT, "MUL": schema.MulOptionsT}

    def apply(op: str, sources: list[int], shape: tuple[int, ...], size: int = 0) -> int:
        output = graph.tensor(shape, "float32", name="output")
        options = schemas[op]() if op in schemas else None
        if size:
            options.filterHeight = options.filterWidth = options.strideH = options.strideW = size
            options.padding = schema.Padding.VALID
        graph.builtin(op, sources, [output], options)
        return output

    def convolve(conv: Conv, image: int) -> int:
        packed = graph.tensor((*conv.input_shape[:3], 2))
        graph.custom("LceQuantize", [image], [packed])
        return conv.add_to(graph, packed)

    def pool(values: Any, size: int) -> Any:
        images, height, width, channels = values.shape
        windows = values.reshape(images, height // size, size, width // size, size, channels)
        return windows.mean(axis=(2, 4))

    source = graph.tensor(first.input_shape, "float32", name="input")
    x = np.random.default_rng(5).normal(0, 10, first.input_shape).astype(np.float32)
    convolved = convolve(first, source)
    total = apply("ADD", [convolved, apply("AVERAGE_POOL_2D", [source], shape, 2)], shape)
    computed = first.compute(reference.lce_quantize(x)) + pool(x.astype(np.float64), 2)

    convolved = convolve(second, total)
    mean = apply("AVERAGE_POOL_2D", [total], (1, 1, 1, 64), 4)
    product = apply("MUL", [convolved, apply("LOGISTIC", [mean], (1, 1, 1, 64))], shape)
    alpha = np.random.default_rng(6).normal(0, 1, (1, 1, 64)).astype(np.float32)
    output = apply("ADD", [apply("PRELU", [product, graph.constant(alpha)], shape), total], shape)
    gated = second.compute(reference.lce_quantize(computed)) / (1 + np.exp(-pool(computed, 4)))
    expected = (np.where(gated < 0, gated * alpha, gated) + computed).astype(np.float32)
    return Case("delayed", graph.build([source], [output]), x, expected, 10 * second.tolerance(expected))


def between_float_ops() -> Iterator[Case]:
    """Yields two models of a binary layer between float ops that stay with the runtime. In the second model, the
    layer's signs are packed from a dynamic tensor."""
    conv = Conv((1, 4, 5, 32), 16)
    for dynamic in (False, True):
        graph = Graph()
        source = graph.tensor((1, 20, 32), "float32", name="input")
        negated = graph.tensor((1, 20, 32), "float32")
        graph.builtin("NEG", [source], [negated], schema.NegOptionsT())
        reshaped = graph.tensor(conv.input_shape, "float32")
        shape = graph.constant(np.array(conv.input_shape, np.int32))
        if dynamic:
            # The shape for RESHAPE is computed at run time, which makes the output of RESHAPE dynamic.
            computed = graph.tensor((4,), "int32")
            zero = graph.tensor((4,), "int32")
            graph.builtin("SUB", [shape, shape], [zero], schema.SubOptionsT())
            graph.builtin("ADD", [shape, zero], [computed], schema.AddOptionsT())
            shape = computed
        graph.builtin("RESHAPE", [negated, shape], [reshaped], schema.ReshapeOptionsT())
        packed = graph.tensor((1, 4, 5, 1))
        graph.custom("LceQuantize", [reshaped], [packed])
        output = graph.tensor(conv.output_shape, "float32", name="output")
        graph.builtin("NEG", [conv.add_to(graph, packed)], [output], schema.NegOptionsT())

        x = np.random.default_rng(4).normal(size=(1, 20, 32)).astype(np.float32)
        expected = -conv.compute(reference.lce_quantize(-x.reshape(conv.input_shape)))
        name = "after_a_dynamic_tensor" if dynamic else "between_float_ops"
        yield Case(name, graph.build([source], [output]), x, expected, conv.tolerance(expected))


def wrong_options() -> Iterator[Refusal]:
    """Yields models to refuse: every option of every op is missing, of another type, zero or negative, or too large."""
    pool = {
        "padding": (0, 1),
        "stride_width": (1, INT32_MAX),
        "stride_height": (1, INT32_MAX),
        "filter_width": (1, INT32_MAX),
        "filter_height": (1, INT32_MAX),
    }
    conv = {
        "channels_in": (1, INT32_MAX),
        "dilation_height_factor": (1, INT32_MAX),
        "dilation_width_factor": (1, INT32_MAX),
        "fused_activation_function": (0, 3),
        "pad_values": (0, 1),
        "padding": (0, 1),
        "stride_height": (1, INT32_MAX),
        "stride_width": (1, INT32_MAX),
    }
    for op, ranges in (("LceBconv2d", conv), ("LceBMaxPool2d", pool)):
        for option, (low, high) in ranges.items():
            bad: dict[str, Any] = {"missing": None, "float": 1.0, "string": "1", "negative": -1, "huge": 2**31}
            if low == 1:
                bad["zero"] = 0
            if high < INT32_MAX:
                bad["max"] = INT32_MAX
            for kind, value in bad.items():
                changed = {option: value}
                if op == "LceBconv2d":
                    model = Conv(changed=changed).model()
                else:
                    model = lce_models.bmaxpool_model((1, 5, 5, 2), (3, 3), (2, 2), reference.SAME, changed)
                found = "none" if value is None else value if isinstance(value, int) else "a value of another type"
                message = f"option {option}: expected an integer from {low} to {high}, found {found}"
                yield Refusal(f"{op}_{option}_{kind}", model, op, re.escape(message))
    for option in ("dilation_height_factor", "dilation_width_factor"):
        model = Conv(changed={option: INT32_MAX}).model()
        yield Refusal(f"{option}_overflows", model, "LceBconv2d", "expected at most 2147483647 with its padding, found")
    for option in ("filter_height", "filter_width"):
        model = lce_models.bmaxpool_model((1, 5, 5, 2), (3, 3), (2, 2), reference.SAME, {option: INT32_MAX})
        yield Refusal(
            f"{option}_overflows", model, "LceBMaxPool2d", "expected at most 2147483647 with its padding, found"
        )


def broken_options() -> Iterator[Refusal]:
    """Yields models that runtimes must refuse, because the FlexBuffer with an op's options is truncated: in each model
    at another byte.
    """
    whole = bytes(lce_models.flexbuffers.Dumps(Conv().options))
    for size in range(len(whole)):
        yield Refusal(f"options_cut_at_{size:03d}", conv_with_options(whole[:size]), "LceBconv2d", "option ")


def conv_with_options(options: bytes) -> bytes:
    """A convolution model with these bytes as its options."""
    conv = Conv()
    graph = Graph()
    source = graph.tensor((1, 5, 6, 2), name="input")
    output = conv.add_to(graph, source)
    graph.operators[-1].customOptions = np.frombuffer(options, np.uint8)
    return graph.build([source], [output])


def wrong_tensors() -> Iterator[Refusal]:
    """Yields models to refuse: their shapes or types do not match."""

    def conv(name: str, message: str, *, output: str = "float32", **changes: Any) -> Refusal:
        """A model of a convolution whose constants are replaced, or whose `input` or `output_shape` has another
        shape."""
        description = Conv(output=output)
        graph = Graph()
        source = graph.tensor(changes.pop("input", (1, 5, 6, 2)), name="input")
        shape = changes.pop("output_shape", description.output_shape)
        constants = description.constants() | changes
        inputs = [source]
        for role, value in constants.items():
            inputs.append(lce_models.LEFT_OUT if value is None else graph.constant(value, name=role))
        result = graph.tensor(shape, "int32" if output == "packed" else output, name="output")
        graph.custom("LceBconv2d", inputs, [result], description.options)
        return Refusal(name, graph.build([source], [result]), "LceBconv2d", message)

    yield conv(
        "input_channels", r"input .*last dimension: expected 2 words for 64 channels, found 3", input=(1, 5, 6, 3)
    )
    yield conv("input_rank", r"input .*shape: expected 4 dimensions, found \[5, 6, 2\]", input=(5, 6, 2))
    yield conv("filter_channels", r"filter .*last dimension: expected 2 words", filter=np.zeros((8, 3, 3, 3), np.int32))
    yield conv("filter_rank", r"filter .*shape: expected 4 dimensions", filter=np.zeros((8, 3, 6), np.int32))
    yield conv(
        "filter_type", r"filter .*type: expected INT32, found FLOAT32", filter=np.zeros((8, 3, 3, 2), np.float32)
    )
    for role, dtype, other in (
        ("post_activation_multiplier", np.float32, np.int32),
        ("post_activation_bias", np.float32, np.int32),
        ("output_threshold", np.int32, np.float32),
    ):
        length = f"{role} .*length: expected 8, one for each output channel, found "
        yield conv(f"{role}_short", f"{length}7", **{role: np.zeros(7, dtype)})
        yield conv(f"{role}_long", f"{length}9", **{role: np.zeros(9, dtype)})
        yield conv(f"{role}_rank", rf"{role} .*shape: expected 1 dimensions", **{role: np.zeros((2, 4), dtype)})
        yield conv(f"{role}_type", rf"{role} .*type: expected", **{role: np.zeros(8, other)})
    packed = r"output .*shape: expected 4 dimensions, the last 1 words for 8 channels, found \[1, 5, 6, 8\]"
    yield conv("packed_last_dimension", packed, output="packed", output_shape=(1, 5, 6, 8))
    yield conv(
        "packed_without_threshold", "output_threshold: expected a tensor", output="packed", output_threshold=None
    )
    yield Refusal(
        "packed_zero_padding_odd_channels",
        Conv((1, 5, 6, 33), output="packed", pad_values=0).model(),
        "LceBconv2d",
        "option channels_in: expected an even number",
    )
    yield Refusal(
        "int8_output_without_scale", Conv(output="int8", scale=0.0).model(), "LceBconv2d", "expected one scale above 0"
    )
    yield Refusal("quantize_uint8", lce_models.quantize_model((2, 5), "uint8"), "LceQuantize", "found UINT8")
    yield Refusal("quantize_scalar_words", lce_models.quantize_model((2, 5), "int32"), "LceQuantize", "found INT32")

    graph = Graph()
    source, output = graph.tensor((2, 3), name="input"), graph.tensor((2, 97), "float32", name="output")
    graph.custom("LceDequantize", [source], [output])
    message = "output .*last dimension: expected a number of channels that packs into 3 words, found 97"
    yield Refusal("dequantize_channels", graph.build([source], [output]), "LceDequantize", message)

    graph = Graph()
    description = Conv()
    source = graph.tensor((1, 5, 6, 2), name="input")
    weights = graph.tensor((8, 3, 3, 2), name="filter")
    result = graph.tensor(description.output_shape, "float32", name="output")
    graph.custom("LceBconv2d", [source, weights], [result], description.options)
    message = "filter .*values: expected constants, found none"
    yield Refusal("filter_is_an_input", graph.build([source, weights], [result]), "LceBconv2d", message)

    # The output of an op has more than 2147483647 values. The runtime itself would refuse an input of the graph with so
    # many values.
    for name, shape in (("output_overflows", (1, 40000, 40000, 1)), ("output_overflows_more", (1, INT32_MAX, 1, 1))):
        graph = Graph()
        large = Conv((1, 5, 5, 32), 64, (1, 1))
        source = graph.tensor(shape, name="input")
        output = large.add_to(graph, source)
        model = graph.build([source], [output])
        yield Refusal(name, model, "LceBconv2d", "expected at most 2147483647 values, found")


def all_cases() -> Iterator[Case | Refusal]:
    """Returns all cases of the test suite for runtimes."""
    yield from golden()
    yield from random_convs(48)
    yield from edge_convs()
    yield from other_ops()
    yield from chains()
    yield shortcuts("shortcuts", activation=0)
    yield shortcuts("shortcuts_with_relu", activation=1)
    yield from int8_layers()
    yield from pooled()
    yield from gated()
    yield delayed()
    yield from between_float_ops()
    yield from wrong_options()
    yield from broken_options()
    yield from wrong_tensors()


def write(folder: Path) -> None:
    """Writes all cases into `folder`, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for case in all_cases():
        (folder / f"{case.name}.tflite").write_bytes(case.model)
        if isinstance(case, Case):
            contents = {"input": case.input, "expected": case.expected, "tolerance": case.tolerance}
            np.savez(folder / f"{case.name}.npz", **contents)
        else:
            text = json.dumps({"op": case.op, "message": case.message})
            (folder / f"{case.name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
