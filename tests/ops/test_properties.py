"""Tests properties of the custom ops with random models: the delegate gives the results of the NumPy reference."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.runtime.find import find_runtime
from tests.runtimes.backends import DELEGATE, PythonRuntime
from tests.support import lce_models, reference

pytestmark = pytest.mark.usefixtures("library")
# Hypothesis warns of fixtures that all examples share. The warning is off, because each example builds its own model
# and interpreter.
run_quietly = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def run(model: bytes, x: Any, num_threads: int = 1) -> Any:
    """Runs a model with one input and one output, resized to the input's shape."""
    return PythonRuntime().session(model, DELEGATE, num_threads)(x)


def assert_close(found: Any, expected: Any, tolerance: float) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=0, atol=tolerance)


@st.composite
def convs(draw: st.DrawFn) -> lce_models.Conv:
    """Draws a small random convolution of any kind that the op LceBconv2d accepts."""
    groups = draw(st.sampled_from([1, 1, 1, 2, 3]))
    channels_in = groups * 32 * draw(st.integers(1, 3)) if groups > 1 else draw(st.integers(1, 200))
    output = draw(st.sampled_from(["float32", "int8", "packed"]))
    amounts = st.tuples(st.integers(0, 5), st.integers(0, 5))
    padding = draw(st.one_of(st.sampled_from([reference.SAME, reference.VALID]), st.tuples(amounts, amounts)))
    pad_values = draw(st.integers(0, 1))
    # If a layer pads with zeros and has an odd number of channels, the op refuses packed output.
    assume(not (output == "packed" and padding != reference.VALID and pad_values == 0 and channels_in % 2))
    filter_size = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    dilations = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    least = [1, 1]
    if padding != reference.SAME:
        padded = [sum(axis) for axis in padding] if isinstance(padding, tuple) else [0, 0]
        steps = zip(filter_size, dilations, padded, strict=True)
        least = [max((taps - 1) * dilation + 1 - amount, 1) for taps, dilation, amount in steps]
    return lce_models.Conv(
        input_shape=(
            draw(st.integers(1, 3)),
            least[0] + draw(st.integers(0, 7)),
            least[1] + draw(st.integers(0, 7)),
            channels_in,
        ),
        channels_out=groups * draw(st.integers(1, 70)),
        filter_size=filter_size,
        groups=groups,
        strides=(draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        dilations=dilations,
        padding=padding,
        pad_values=pad_values,
        activation=draw(st.integers(0, 3)),
        output=output,
        multiplier=draw(st.booleans()),
        bias=draw(st.booleans()),
        scale=draw(st.sampled_from([0.25, 1.0, 3.7])),
        zero_point=draw(st.integers(-128, 127)),
        seed=draw(st.integers(0, 2**31)),
    )


@given(conv=convs(), num_threads=st.integers(1, 3))
@settings(run_quietly, max_examples=300)
def test_bconv2d(conv: lce_models.Conv, num_threads: int) -> None:
    words = conv.random_input()
    expected = conv.compute(words)
    found = run(conv.model(), words, num_threads)
    assert_close(found, expected, conv.tolerance(expected))
    if conv.output == "int8":
        # If a result lies near the middle of two int8 values, which is rare, the op may round it to the other one.
        assert np.mean(found != expected) < 0.02 or np.sum(found != expected) <= 1


@given(conv=convs(), batch=st.integers(1, 4))
@settings(run_quietly, max_examples=30)
def test_bconv2d_with_another_batch_size_than_the_models(conv: lce_models.Conv, batch: int) -> None:
    words = conv.random_input(batch)
    expected = conv.compute(words)
    assert_close(run(conv.model(), words), expected, conv.tolerance(expected))


shapes = st.lists(st.integers(1, 5), max_size=4).flatmap(
    lambda leading: st.integers(1, 100).map(lambda channels: (*leading, channels))
)


@given(shape=shapes, seed=st.integers(0, 2**31))
@settings(run_quietly, max_examples=40)
def test_quantize_float32(shape: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape).astype(np.float32)
    special = rng.choice(np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-45, -1e-45], np.float32), shape)
    x = np.where(rng.random(shape) < 0.3, special, x)
    expected = reference.lce_quantize(x)
    np.testing.assert_array_equal(run(lce_models.quantize_model(shape, "float32"), x), expected)


@given(shape=shapes, seed=st.integers(0, 2**31), zero_point=st.integers(-128, 127))
@settings(run_quietly, max_examples=40)
def test_quantize_int8(shape: tuple[int, ...], seed: int, zero_point: int) -> None:
    x = np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)
    model = lce_models.quantize_model(shape, "int8", 0.1, zero_point)
    np.testing.assert_array_equal(run(model, x), reference.lce_quantize(x, zero_point))


@given(shape=shapes, seed=st.integers(0, 2**31))
@settings(run_quietly, max_examples=20)
def test_quantize_bool(shape: tuple[int, ...], seed: int) -> None:
    x = np.random.default_rng(seed).random(shape) < 0.5
    np.testing.assert_array_equal(run(lce_models.quantize_model(shape, "bool"), x), reference.lce_quantize(x))


@given(
    shape=shapes,
    seed=st.integers(0, 2**31),
    dtype=st.sampled_from(["float32", "int8", "bool"]),
    scale=st.sampled_from([1e-6, 0.01, 0.3, 0.7, 1.0, 2.0, 3.0]),
    zero_point=st.integers(-128, 127),
)
@settings(run_quietly, max_examples=60)
def test_dequantize(shape: tuple[int, ...], seed: int, dtype: str, scale: float, zero_point: int) -> None:
    words = reference.pack(np.random.default_rng(seed).choice([-1, 1], shape))
    model = lce_models.dequantize_model(shape, dtype, *((scale, zero_point) if dtype == "int8" else ()))
    expected = reference.lce_dequantize(words, shape[-1], np.dtype(dtype), scale, zero_point)
    np.testing.assert_array_equal(run(model, words), expected)


@given(
    shape=st.lists(st.integers(1, 9), min_size=2, max_size=4),
    is_ternary=st.booleans(),
    seed=st.integers(0, 2**31),
)
@settings(run_quietly, max_examples=40)
def test_unpack_weights(shape: list[int], is_ternary: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = shape[0], int(np.prod(shape[1:]))
    signs, zeros = (reference.pack(rng.choice([-1, 1], rows)) for _ in range(2))
    scales = rng.standard_normal(shape[-1] if shape[0] == 1 else shape[0]).astype(np.float32)
    parts = signs, scales, zeros if is_ternary else None, tuple(shape)
    x = np.zeros(shape, np.float32)
    np.testing.assert_array_equal(run(lce_models.unpack_weights_model(*parts), x), reference.unpack_weights(*parts))


@given(
    size=st.tuples(st.integers(1, 2), st.integers(1, 9), st.integers(1, 9), st.integers(1, 4)),
    filter_size=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    strides=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    padding=st.sampled_from([reference.SAME, reference.VALID]),
    seed=st.integers(0, 2**31),
)
@settings(run_quietly, max_examples=60)
def test_bmaxpool2d(size: Any, filter_size: Any, strides: Any, padding: int, seed: int) -> None:
    assume(padding == reference.SAME or (filter_size[0] <= size[1] and filter_size[1] <= size[2]))
    words = np.random.default_rng(seed).integers(-(2**31), 2**31, size).astype(np.int32)
    model = lce_models.bmaxpool_model(size, filter_size, strides, padding)
    np.testing.assert_array_equal(run(model, words), reference.lce_bmaxpool2d(words, filter_size, strides, padding))


@given(seed=st.integers(0, 2**31), size=st.integers(1, 14), num_threads=st.integers(1, 3))
@settings(run_quietly, max_examples=15)
def test_all_ops_in_one_partition(seed: int, size: int, num_threads: int) -> None:
    assume(size > 4)
    model, x, expected = lce_models.chain_model(size=size, seed=seed)
    # If a value differs from 0 only by rounding, its sign may be either.
    assert np.mean(run(model, x, num_threads) != expected) < 0.001


@pytest.mark.parametrize("activation", [0, 1])
@pytest.mark.parametrize("read_twice", [False, True])
@pytest.mark.parametrize(
    ("batch", "addend_shape"),
    [(3, (1, 5, 6, 8)), (1, (2, 5, 6, 8)), (2, (8,)), (2, (1, 1, 6, 1)), (1, (2, 5, 1, 8)), (1, (1, 1, 1, 1))],
)
def test_an_addition_broadcasts_where_inputs_were_resized(
    batch: int, addend_shape: tuple[int, ...], read_twice: bool, activation: int
) -> None:
    conv = lce_models.Conv()
    graph = lce_models.Graph()
    source, addend = graph.tensor((1, 5, 6, 2), name="input"), graph.tensor(conv.output_shape, "float32", name="addend")
    convolved, total = conv.add_to(graph, source), graph.tensor(conv.output_shape, "float32", name="sum")
    options = lce_models.schema.AddOptionsT()
    options.fusedActivationFunction = activation
    graph.builtin("ADD", [addend, convolved], [total], options)
    # A convolution whose output has another consumer is not fused with the addition.
    model = graph.build([source, addend], [total, convolved] if read_twice else [total])
    interpreter = find_runtime().Interpreter(
        model_content=model, experimental_delegates=[litebnn.load_delegate(num_threads=2)]
    )
    first, second = (detail["index"] for detail in interpreter.get_input_details())
    result = interpreter.get_output_details()[0]["index"]

    def run_with(batch: int, addend_shape: tuple[int, ...]) -> None:
        words, added = conv.random_input(batch), np.random.default_rng(1).normal(0, 20, addend_shape)
        interpreter.resize_tensor_input(first, words.shape)
        interpreter.resize_tensor_input(second, addend_shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(first, words)
        interpreter.set_tensor(second, added.astype(np.float32))
        interpreter.invoke()
        expected = (conv.compute(words) + added.astype(np.float32)).astype(np.float32)
        expected = np.maximum(expected, 0) if activation else expected
        assert_close(interpreter.get_tensor(result), expected, conv.tolerance(expected))

    run_with(batch, addend_shape)
    run_with(1, conv.output_shape)
    run_with(batch, addend_shape)
    with pytest.raises((RuntimeError, ValueError), match=r"shape: expected one that goes with \["):
        run_with(1, (1, 5, 6, 7))


@given(
    conv=convs(),
    filter_size=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.sampled_from([reference.SAME, reference.VALID]),
    activation=st.integers(0, 3),
    adds=st.booleans(),
    batch=st.integers(1, 3),
    num_threads=st.integers(1, 3),
)
@settings(run_quietly, max_examples=100)
def test_max_pool_of_a_convolution(
    conv: lce_models.Conv,
    filter_size: Any,
    strides: Any,
    padding: int,
    activation: int,
    adds: bool,
    batch: int,
    num_threads: int,
) -> None:
    conv.output = "float32"
    _, height, width, channels = conv.output_shape
    assume(padding == reference.SAME or (filter_size[0] <= height and filter_size[1] <= width))
    graph = lce_models.Graph()
    *pixels, channels_in = conv.input_shape
    source = graph.tensor((*pixels, (channels_in + 31) // 32), name="input")
    values = conv.add_to(graph, source)
    if adds:
        # The delegate does not fuse an addition that reads the convolution's output twice.
        total = graph.tensor(conv.output_shape, "float32")
        graph.builtin("ADD", [values, values], [total], lce_models.schema.AddOptionsT())
        values = total
    sizes = [
        reference.axis_window(size, filter_size[i], strides[i], 1, padding)[0] for i, size in enumerate((height, width))
    ]
    pooled = graph.tensor((conv.output_shape[0], *sizes, channels), "float32", name="pooled")
    graph.max_pool(values, pooled, filter_size, strides, padding, activation)

    words = conv.random_input(batch)
    expected = reference.max_pool2d(conv.compute(words) * (2 if adds else 1), filter_size, strides, padding)
    low, high = {0: (-np.inf, np.inf), 1: (0, np.inf), 2: (-1, 1), 3: (0, 6)}[activation]
    found = run(graph.build([source], [pooled]), words, num_threads)
    assert_close(found, np.clip(expected, low, high), conv.tolerance(expected))


def test_a_max_pool_is_claimed_with_what_it_reads(capfd: pytest.CaptureFixture[str]) -> None:
    conv = lce_models.Conv()
    graph = lce_models.Graph()
    source, image = graph.tensor((1, 5, 6, 2), name="input"), graph.tensor((1, 5, 6, 8), "float32", name="image")
    convolved, total = conv.add_to(graph, source), graph.tensor(conv.output_shape, "float32", name="sum")
    graph.builtin("ADD", [convolved, convolved], [total], lce_models.schema.AddOptionsT())
    signs, values = graph.tensor((1, 5, 6, 1), name="signs"), graph.tensor(conv.output_shape, "float32", name="values")
    graph.custom("LceQuantize", [image], [signs])
    graph.custom("LceDequantize", [signs], [values])
    results = []

    def pool(source: int, activation: int) -> int:
        results.append(graph.tensor((1, 5, 6, 8), "float32", name=f"pooled{len(results)}"))
        graph.max_pool(source, results[-1], (2, 2), (1, 1), reference.SAME, activation)
        return results[-1]

    for source_of_pools in (convolved, total, values):
        # The file format numbers the activations: none is 0, RELU is 1 and RELU6 is 3.
        for activation in (0, 1, 3):
            pool(source_of_pools, activation)
    pool(results[0], 0)
    pool(pool(image, 0), 0)
    model = graph.build([source, image], results)
    find_runtime().Interpreter(model_content=model, experimental_delegates=[litebnn.load_delegate(verbose=True)])
    # The delegate claims the 4 ops that are no pools. Each of three of their outputs has three pools: with no
    # activation, with RELU and with RELU6. The delegate claims these pools, except those with RELU6. It also claims
    # the pool of a claimed pool's output, but not the two pools after the float input.
    assert f"the delegate takes {4 + 2 * 3 + 1} of {4 + 3 * 3 + 3} nodes" in capfd.readouterr().err


def test_a_max_pool_refuses_an_image_resized_below_its_filter() -> None:
    conv = lce_models.Conv()
    graph = lce_models.Graph()
    source = graph.tensor((1, 5, 6, 2), name="input")
    pooled = graph.tensor((1, 1, 2, 8), "float32", name="pooled")
    graph.max_pool(conv.add_to(graph, source), pooled, (5, 5), (1, 1), reference.VALID, 0)
    interpreter = find_runtime().Interpreter(
        model_content=graph.build([source], [pooled]), experimental_delegates=[litebnn.load_delegate()]
    )
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], (1, 4, 6, 2))
    with pytest.raises((RuntimeError, ValueError), match=r"MAX_POOL_2D.*height: expected at least 5"):
        interpreter.allocate_tensors()


def test_a_tensor_that_two_nodes_write_is_refused() -> None:
    # The model writes one tensor twice. With the delegate, a runtime would run both ops that write it before the float
    # op, which must read the first value.
    conv = lce_models.Conv((1, 4, 5, 32), 32)
    graph = lce_models.Graph()
    image, words = graph.tensor(conv.input_shape, "float32"), graph.tensor((1, 4, 5, 1))
    negated = graph.tensor(conv.input_shape, "float32")
    graph.custom("LceQuantize", [image], [words])
    first = conv.add_to(graph, words)
    graph.builtin("NEG", [first], [negated], lce_models.schema.NegOptionsT())
    graph.custom("LceQuantize", [negated], [words])
    model = graph.build([image], [first, conv.add_to(graph, words)])
    with pytest.raises(
        (RuntimeError, ValueError),
        match=rf"LceQuantize, node 3: output 0 \(tensor {words}\): expected no node before this one to write it",
    ):
        find_runtime().Interpreter(model_content=model, experimental_delegates=[litebnn.load_delegate()])


def gated_model(whole: bool, activation: int) -> tuple[bytes, list[Any]]:
    """A model that multiplies an image by two gates, followed by a PRELU and an addition. The inputs contain special
    numbers.

    If `whole` is true, the first gate consists of unpacked signs and the last sum is packed, so that the delegate
    claims all ops.
    """
    shape, channels = (2, 5, 6, 37), 37
    rng = np.random.default_rng(3)
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, np.finfo(np.float32).max], np.float32)
    if activation == 1:
        # Inputs of RELU are never NaN, because the delegate's RELU turns a NaN into +0, and some runtimes' RELU does
        # not. The test replaces each -0 in the results by +0 before it compares them.
        special = special[:2]

    def values(*sizes: int) -> Any:
        usual = rng.normal(0, 3, sizes).astype(np.float32)
        return np.where(rng.random(sizes) < 0.8, usual, rng.choice(special, sizes))

    graph = lce_models.Graph()
    signs = rng.choice(np.array([-1, 1], np.float32), (2, 1, 1, channels))
    image, gate, addend = values(*shape), values(1, channels), values(*shape)
    given = [reference.lce_quantize(signs) if whole else signs, image, gate, addend]
    inputs = [graph.tensor(value.shape, str(value.dtype), name=f"input{i}") for i, value in enumerate(given)]
    first = inputs[0]
    if whole:
        first = graph.tensor(signs.shape, "float32", name="signs")
        graph.custom("LceDequantize", [inputs[0]], [first])

    def op(name: str, *sources: int, options: Any = None) -> int:
        output = graph.tensor(shape, "float32", name=name)
        graph.builtin(name, list(sources), [output], options)
        return output

    multiplication, addition = lce_models.schema.MulOptionsT(), lce_models.schema.AddOptionsT()
    multiplication.fusedActivationFunction = addition.fusedActivationFunction = activation
    product = op("MUL", inputs[1], first, options=lce_models.schema.MulOptionsT())
    product = op("MUL", inputs[2], product, options=multiplication)
    # XNNPACK multiplies -0 by the slope only on CPUs without AVX-512. The difference is visible if the slope is
    # negative or not finite.
    slopes = rng.uniform(0.1, 3, (1, 1, channels)).astype(np.float32)
    leaked = op("PRELU", product, graph.constant(slopes))
    outputs = [op("ADD", inputs[3], leaked, options=addition)]
    if whole:
        outputs.append(graph.tensor((*shape[:3], 2), name="packed"))
        graph.custom("LceQuantize", outputs[:1], outputs[1:])
    return graph.build(inputs, outputs), given


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("activation", [0, 1, 3])
def test_gates_give_the_runtimes_bits(activation: int, num_threads: int, capfd: pytest.CaptureFixture[str]) -> None:
    results = []
    for whole in (False, True):
        model, given = gated_model(whole, activation)
        delegates = [litebnn.load_delegate(num_threads=num_threads, verbose=True)] if whole else []
        interpreter = find_runtime().Interpreter(model_content=model, experimental_delegates=delegates)
        interpreter.allocate_tensors()
        for detail, value in zip(interpreter.get_input_details(), given, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    # If the gates have a RELU6, the delegate leaves them to the runtime, and therefore also the additions of their
    # outputs.
    taken = 2 if activation == 3 else 6
    assert f"the delegate takes {taken} of 6 nodes" in capfd.readouterr().err
    if activation == 1:
        results = [np.where(result > 0, result, np.float32(0)) for result in results]
    assert np.array_equal(np.isnan(results[0]), np.isnan(results[1]))
    numbers = ~np.isnan(results[0])
    assert results[0][numbers].tobytes() == results[1][numbers].tobytes()
