"""Compares int8 ops of the runtime that the delegate claims with the runtime's reference kernels, bit for bit."""

import re
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

import litebnn
from litebnn.contract import pack_bits
from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.rules.build.int8 import int8_constant
from litebnn.runtime.find import find_runtime
from tests.needs import need
from tests.support import lce_models
from tests.support.quantized_models import Int8Model

pytestmark = pytest.mark.usefixtures("library")
ISAS = ["portable", "avx2", "avx512", "avx512_vbmi", "neon64", "neon64_in_order", "neon64_tbl", "neon32"]


@pytest.fixture
def runtime() -> Any:
    need("ai-edge-litert")
    return find_runtime("ai-edge-litert")


def run(interpreter: Any, inputs: list[Any]) -> Any:
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def reference(runtime: Any, model: bytes, inputs: list[Any]) -> Any:
    resolver = runtime.OpResolverType.BUILTIN_REF
    return run(runtime.Interpreter(model_content=model, experimental_op_resolver_type=resolver), inputs)


def taken(runtime: Any, model: bytes, capfd: pytest.CaptureFixture[str]) -> int:
    capfd.readouterr()
    delegate = litebnn.load_delegate(verbose=True)
    runtime.Interpreter(model_content=model, experimental_delegates=[delegate])
    found = re.search(r"the delegate takes (\d+) of", capfd.readouterr().err)
    assert found is not None
    return int(found[1])


def delegates() -> list[Any]:
    """One delegate for each ISA of this CPU."""
    found = []
    for isa in ISAS:
        try:
            found.append(litebnn.load_delegate(isa=isa))
        except ValueError:
            continue  # this CPU lacks it
    assert found
    return found


def stem(
    seed: int, channels: int, size: int, stride: int, activation: str, *, same: bool = True, groups: int = 1
) -> bytes:
    """An int8 convolution with this many input channels in each group."""
    rng = np.random.default_rng(seed)
    model = Int8Model()
    x = model.input8((float(rng.uniform(0.004, 0.02)), int(rng.integers(-128, 128))), 1, 23, 29, groups * channels)
    outputs = groups * int(rng.integers(1, 80 // groups))
    weights = rng.normal(size=(outputs, size, size, channels)).astype(np.float32)
    bias = rng.normal(size=outputs).astype(np.float32)
    grid = (float(rng.uniform(0.02, 0.1)), int(rng.integers(-128, 100)))
    return model.finish(model.conv8(x, weights, bias, grid, same=same, activation=activation, stride=stride))


@pytest.mark.parametrize(("channels", "groups"), [(1, 1), (2, 1), (3, 1), (4, 1), (4, 5), (8, 2)])
@pytest.mark.parametrize(("size", "stride", "activation"), [(3, 2, "none"), (5, 1, "relu6"), (7, 2, "relu")])
def test_a_convolution_of_few_channels_gives_the_reference_kernels_bits(
    runtime: Any, channels: int, groups: int, size: int, stride: int, activation: str, capfd: pytest.CaptureFixture[str]
) -> None:
    model = stem(channels * size, channels, size, stride, activation, same=stride == 2, groups=groups)
    assert taken(runtime, model, capfd) == 1
    image = np.random.default_rng(1).integers(-128, 128, (1, 23, 29, groups * channels)).astype(np.int8)
    expected = reference(runtime, model, [image])
    for delegate in delegates():
        interpreter = runtime.Interpreter(model_content=model, experimental_delegates=[delegate])
        np.testing.assert_array_equal(run(interpreter, [image]), expected)


@pytest.mark.parametrize(("channels", "groups"), [(5, 1), (3, 4), (9, 2)])
def test_other_convolutions_are_left_to_the_runtime(
    runtime: Any, channels: int, groups: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert taken(runtime, stem(1, channels, 3, 1, "none", groups=groups), capfd) == 0


def test_a_first_convolution_follows_a_resized_input(runtime: Any) -> None:
    model = stem(2, 3, 3, 2, "none")
    interpreter = runtime.Interpreter(model_content=model, experimental_delegates=[litebnn.load_delegate()])
    plain = runtime.Interpreter(model_content=model, experimental_op_resolver_type=runtime.OpResolverType.BUILTIN_REF)
    for shape in [(1, 23, 29, 3), (2, 40, 9, 3), (1, 3, 1, 3)]:
        image = np.random.default_rng(3).integers(-128, 128, shape).astype(np.int8)
        for each in (interpreter, plain):
            each.resize_tensor_input(each.get_input_details()[0]["index"], shape)
        np.testing.assert_array_equal(run(interpreter, [image]), run(plain, [image]))


def sums(seed: int, outputs: int, activation: int) -> tuple[bytes, bytes, bytes, lce_models.Conv]:
    """Makes three models: a binary convolution, an ADD of its int8 output and an input, and both ops together."""
    rng = np.random.default_rng(seed)
    grids = [(float(np.float32(rng.uniform(0.5, 2))), int(rng.integers(-100, 100))) for _ in range(3)]
    if seed % 3 == 0:  # many sums are halfway between two levels
        grids = [(0.5, 3), (0.5, -7), (1.0, 5)]
    own, other, whole = ({"scale": scale, "zero_point": zero} for scale, zero in grids)
    relu = seed % 4 // 2
    conv = lce_models.Conv((2, 9, 7, 64), outputs, (3, 3), output="int8", activation=relu, seed=seed, **own)

    def build(with_conv: bool, with_sum: bool) -> bytes:
        graph = lce_models.Graph()
        words = graph.tensor((2, 9, 7, 2), name="words")
        inputs = [words] if with_conv else [graph.tensor(conv.output_shape, "int8", name="first", **own)]
        last = conv.add_to(graph, words) if with_conv else inputs[0]
        if with_sum:
            addend = graph.tensor(conv.output_shape, "int8", name="addend", **other)
            inputs.append(addend)
            options = schema.AddOptionsT()
            options.fusedActivationFunction = activation
            operands = [last, addend] if seed % 2 == 0 else [addend, last]
            last = graph.tensor(conv.output_shape, "int8", name="sum", **whole)
            graph.builtin("ADD", operands, [last], options)
        return graph.build(inputs, [last])

    return build(True, False), build(False, True), build(True, True), conv


@pytest.mark.parametrize("outputs", [64, 32, 40, 5])
@pytest.mark.parametrize("activation", [0, 1, 2, 3])
def test_a_residual_sum_gives_the_reference_kernels_bits(
    runtime: Any, outputs: int, activation: int, capfd: pytest.CaptureFixture[str]
) -> None:
    for seed in range(3):
        conv_model, sum_model, model, conv = sums(7 * outputs + activation + seed, outputs, activation)
        assert taken(runtime, model, capfd) == 2
        words = conv.random_input()
        addend = np.random.default_rng(seed).integers(-128, 128, conv.output_shape).astype(np.int8)
        for delegate in delegates():
            alone = runtime.Interpreter(model_content=conv_model, experimental_delegates=[delegate])
            expected = reference(runtime, sum_model, [run(alone, [words]), addend])
            fused = runtime.Interpreter(model_content=model, experimental_delegates=[delegate])
            np.testing.assert_array_equal(run(fused, [words, addend]), expected)


@pytest.mark.parametrize("pool", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("activation", [0, 1, 2, 3])
def test_a_pool_gives_the_reference_kernels_bits(
    runtime: Any, pool: str, padding: int, activation: int, capfd: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(activation)
    grid = {"scale": 0.07, "zero_point": int(rng.integers(-60, 60))}
    conv = lce_models.Conv((2, 9, 7, 64), int(rng.integers(1, 90)), (3, 3), output="int8", **grid)
    height, width = (int(size) for size in rng.integers(1, 5, 2))

    def build(with_conv: bool, with_pool: bool) -> bytes:
        graph = lce_models.Graph()
        words = graph.tensor((2, 9, 7, 2), name="words")
        source = words if with_conv else graph.tensor(conv.output_shape, "int8", name="image", **grid)
        last = conv.add_to(graph, words) if with_conv else source
        if with_pool:
            options = schema.Pool2DOptionsT()
            options.padding, options.fusedActivationFunction = padding, activation
            options.filterHeight, options.filterWidth, options.strideH, options.strideW = height, width, 2, 1
            sizes = [(9, height, 2), (7, width, 1)]
            size_of_output = [
                -(-size // stride) if padding == 0 else (size - taps) // stride + 1 for size, taps, stride in sizes
            ]
            pooled = graph.tensor((2, *size_of_output, conv.channels_out), "int8", name="pooled", **grid)
            graph.builtin(pool, [last], [pooled], options)
            last = pooled
        return graph.build([source], [last])

    model = build(True, True)
    assert taken(runtime, model, capfd) == 2
    words = conv.random_input()
    alone = runtime.Interpreter(model_content=build(True, False), experimental_delegates=[litebnn.load_delegate()])
    expected = reference(runtime, build(False, True), [run(alone, [words])])
    interpreter = runtime.Interpreter(model_content=model, experimental_delegates=[litebnn.load_delegate()])
    np.testing.assert_array_equal(run(interpreter, [words]), expected)


def add_norm(model: Int8Model, seed: int, channels: int, multiplies: bool, adds: bool) -> Tensor:
    """Adds an int8 image with one pixel for each int8 value, and its batch norm."""
    rng = np.random.default_rng(seed)

    def grid(low: float, high: float) -> tuple[float, int]:
        # Scales that are powers of two put many results halfway between two levels.
        scale = rng.uniform(low, high)
        return float(np.exp2(np.round(np.log2(scale))) if seed % 3 == 0 else scale), int(rng.integers(-128, 128))

    def constant_of(low: float, high: float) -> Any:
        scale, zero_point = grid(low, high)
        levels = rng.integers(-128, 128, channels)
        return int8_constant(model._name("norm"), (levels - zero_point) * scale, scale, zero_point)

    x = model.input8(grid(0.02, 0.1), 1, 16, 16, channels)
    if multiplies:
        product = model.op("MUL", [x, constant_of(0.005, 0.02)], x.dims, type="INT8", version=2)
        x = model._on(grid(0.02, 0.1), product)
    return model.add8(x, constant_of(0.02, 0.1), grid(0.02, 0.1)) if adds else x


def norm(seed: int, channels: int, multiplies: bool, adds: bool, *, packs: bool) -> bytes:
    """Makes a model of a batch norm of an int8 image and the packing of its signs."""
    model = Int8Model()
    x = add_norm(model, seed, channels, multiplies, adds)
    return model.finish(model.packed(x) if packs else x)


def signs_of_norm(runtime: Any, image: Any, seed: int, *options: Any) -> Any:
    """The packed signs of a batch norm, as the runtime's reference kernels compute it."""
    plain = norm(seed, *options, packs=False)
    [output] = read_model(plain).graphs[0].outputs
    assert output.per_tensor_quantization is not None
    return pack_bits(reference(runtime, plain, [image]) < output.per_tensor_quantization[1])


@pytest.mark.parametrize("channels", [3, 32, 40, 160])
@pytest.mark.parametrize(("multiplies", "adds"), [(True, True), (True, False), (False, True)])
def test_signs_of_a_batch_norm_are_those_of_the_reference_kernels(
    runtime: Any, channels: int, multiplies: bool, adds: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    image = np.arange(-128, 128).astype(np.int8).reshape(1, 16, 16, 1).repeat(channels, axis=3)
    for seed in range(6):
        model = norm(seed, channels, multiplies, adds, packs=True)
        assert taken(runtime, model, capfd) == 1 + multiplies + adds
        expected = signs_of_norm(runtime, image, seed, channels, multiplies, adds)
        for delegate in delegates():
            interpreter = runtime.Interpreter(model_content=model, experimental_delegates=[delegate])
            np.testing.assert_array_equal(run(interpreter, [image]), expected)


def test_signs_of_batch_norms_that_are_put_side_by_side_are_those_of_the_reference_kernels(runtime: Any) -> None:
    parts = [(40, True, True), (3, False, True), (64, True, False), (160, True, True)]
    model = Int8Model()
    packed = [model.packed(add_norm(model, seed, *options)) for seed, options in enumerate(parts)]
    words = sum(part.dims[3] for part in packed)
    whole = model.op("CONCATENATION", packed, (1, 16, 16, words), type="INT32", axis=3)
    levels = np.arange(-128, 128).astype(np.int8).reshape(1, 16, 16, 1)
    images = [levels.repeat(channels, axis=3) for channels, *_ in parts]
    expected = [
        signs_of_norm(runtime, image, seed, *options)
        for seed, (image, options) in enumerate(zip(images, parts, strict=True))
    ]
    content = model.finish(whole)
    for delegate in delegates():
        interpreter = runtime.Interpreter(model_content=content, experimental_delegates=[delegate])
        np.testing.assert_array_equal(run(interpreter, images), np.concatenate(expected, axis=3))
