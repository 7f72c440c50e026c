"""Tests random graphs with the patterns that exporters write: the converted model computes the same values as its
source."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings

import litebnn
from litebnn.analysis.quantization import from_levels, quantized
from litebnn.flatbuffer import read_model
from litebnn.graph import Array
from litebnn.verify.divergence import TOLERANCE, LayerComparison
from litebnn.verify.samples import samples_for
from tests.convert.random_graphs import Case, graphs
from tests.convert.random_quantized_graphs import int8_graphs, int16_graphs, trained_graphs
from tests.support.float_models import FloatModel, dyadic
from tests.support.quantized_models import in_half_precision, with_quantized_weights
from tests.support.reasons import check_reasons
from tests.support.sign_spellings import rounded

SAMPLES = 3  # for a model with an unknown batch size


def _convert(source: bytes, **options: Any) -> tuple[bytes, litebnn.ConversionReport]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        converted, report = litebnn.convert_tflite(source, return_report=True, **options)
    return converted, report


def _inputs(case: Case) -> list[Array]:
    rng = np.random.default_rng(case.seed)
    tensors = read_model(case.source).graphs[0].inputs
    shapes = [[size if size > 0 else SAMPLES for size in tensor.dims] for tensor in tensors]
    return [
        rng.integers(-128, 128, shape).astype(np.int8) if tensor.type == "INT8" else dyadic(rng, *shape, largest=16)
        for tensor, shape in zip(tensors, shapes, strict=True)
    ]


def _run(model: bytes, x: Array | list[Array]) -> list[Array]:
    result = litebnn.Interpreter(model).predict(x)
    return result if isinstance(result, list) else [result]


def _run_as(source: bytes, model: bytes, inputs: list[Array]) -> list[Array]:
    """Runs a converted model and returns its outputs. If the model's inputs and outputs are int8, this function
    converts them from and to the floats of `source`.
    """
    interpreter, of_source = litebnn.Interpreter(model), litebnn.Interpreter(source)
    assert interpreter.input_names == of_source.input_names
    assert interpreter.output_names == of_source.output_names
    given = [
        quantized(x, *grid) if dtype == np.int8 != x.dtype else x
        for x, dtype, grid in zip(inputs, interpreter.input_types, interpreter.input_quantization, strict=True)
    ]
    by_name = interpreter.predict(dict(zip(reversed(interpreter.input_names), reversed(given), strict=True)))
    outputs = [by_name[name] for name in interpreter.output_names]
    for listed, named in zip(_listed(interpreter.predict(given)), outputs, strict=True):
        np.testing.assert_array_equal(listed, named)
    return [
        from_levels(output, *grid) if output.dtype == np.int8 != dtype else output
        for output, dtype, grid in zip(outputs, of_source.output_types, interpreter.output_quantization, strict=True)
    ]


def _listed(result: Any) -> list[Array]:
    return result if isinstance(result, list) else [result]


def _check(case: Case) -> None:
    """Checks that source and result agree, and that every layer is binary or has a reason."""
    inputs = _inputs(case)
    converted, report = _convert(case.source, **case.options)
    results = _run_as(case.source, converted, inputs)
    for expected, actual in zip(_run(case.source, inputs), results, strict=True):
        np.testing.assert_allclose(actual.astype(np.float32), expected.astype(np.float32), rtol=0, atol=case.tolerance)
    check_reasons(case.source, report, inputs)


def _check_for_larq(case: Case) -> None:
    _check(Case(case.source, case.seed, larq_compatible=True))


def _check_low_bit_weights(case: Case) -> None:
    source = in_half_precision(case.source) if case.seed % 4 > 1 else case.source
    _check(Case(source, case.seed, low_bit_weights="int2" if case.seed % 2 else "int4"))


def _check_compared(case: Case) -> None:
    """Compares a model with its conversion layer by layer. If all sums are exact, no layer may differ. If they are not,
    layers may differ only by rounding."""
    converted, _ = _convert(case.source)
    layers, model = LayerComparison("a test", case.source, converted), read_model(case.source)
    inputs = _inputs(case)
    for sample in samples_for("a test", model, inputs, count=SAMPLES):
        assert list(map(str, layers.divergences(sample))) == []
    rng = np.random.default_rng(case.seed)
    numbers = [rng.standard_normal(x.shape).astype(np.float32) for x in inputs]
    for sample in samples_for("a test", model, numbers, count=SAMPLES):
        first = layers.first_divergence(sample)
        assert first is None or first.by_rounding, str(first)
        gap, wrong = layers.given_the_sources_signs(sample)
        assert wrong is None, str(wrong)
        assert gap <= TOLERANCE


def _check_half_precision(case: Case) -> None:
    _check(Case(in_half_precision(case.source), case.seed))


def _check_quantized_weights(case: Case) -> None:
    """Quantizes the weights of the source, which changes its outputs a little. If all layers become binary, the result
    computes exactly the outputs of the source with float weights.
    """
    source = with_quantized_weights(case.source, ("INT8", "INT8", "INT4", "INT2")[case.seed % 4])
    converted, report = _convert(source)
    inputs = _inputs(case)
    check_reasons(source, report, inputs)
    results = _run_as(source, converted, inputs)
    if all(layer.binary for layer in report.layers):
        for expected, actual in zip(_run(case.source, inputs), results, strict=True):
            np.testing.assert_array_equal(actual, expected)


def _check_int16(case: Case) -> None:
    """Checks that all layers that read signs are binary. Their weights are ±alpha in these graphs."""
    _check(case)
    _, report = _convert(case.source)
    assert [layer.binary for layer in report.layers] == [False, *[True] * (len(report.layers) - 1)]


def _check_trained(case: Case) -> None:
    """Checks that no fake-quantized op stays float."""
    _check(case)
    converted, _ = _convert(case.source, **case.options)
    left = {op.name for op in read_model(converted).ops() if op.output.type == "FLOAT32"}
    assert left.isdisjoint({"CONV_2D", "FULLY_CONNECTED", "SOFTMAX"})


def _check_calibrated(case: Case) -> None:
    """Checks that a model quantized with samples loads and runs, even if a tensor is all zero.

    The result must be close to the source, unless a sign of rounded values flips and changes all later values.
    """
    inputs = _inputs(case)
    size = len(inputs[0]) // SAMPLES if read_model(case.source).graphs[0].inputs[0].dims[0] < 0 else len(inputs[0])
    samples = [[x[start : start + size] for x in inputs] for start in range(0, len(inputs[0]), size)]
    types = {"inference_input_type": "int8"} if case.seed % 3 == 0 else {}
    converted, report = _convert(case.source, representative_dataset=samples, **types)
    results = _run_as(case.source, converted, inputs)
    graph = read_model(converted).graphs[0]
    are_exact = all(layer.binary for layer in report.layers)
    are_exact &= all(op.input(0) in graph.inputs for op in graph.ops if op.name == "LceQuantize")
    grids = [tensor.per_tensor_quantization for tensor in graph.all_tensors() if tensor.type == "INT8"]
    coarsest = max((scale for scale, _ in filter(None, grids)), default=0.0)
    for expected, actual in zip(_run(case.source, inputs), results, strict=True):
        assert np.all(np.isfinite(actual))
        if not are_exact:
            continue
        error = np.sqrt(np.mean((actual - expected) ** 2))
        assert error <= max(0.1 * np.sqrt(np.mean(expected**2)), 4 * coarsest)
    check_reasons(case.source, report, inputs)


EXAMPLES = {"deadline": None, "suppress_health_check": list(HealthCheck)}
# The numbers of random graphs of each kind. The quick tier runs an eighth of them.
COUNTS, QUICK_SHARE = {"float": 200}, 8
COUNT = 60  # of other kinds
PARTS, OF_A_PART = 8, 250  # of each kind: of ten kinds, 20,000 graphs
KINDS: dict[str, tuple[Any, Callable[[Case], None]]] = {
    "float": (graphs(), _check),
    "for_larq": (graphs(), _check_for_larq),
    "low_bit_weights": (graphs(), _check_low_bit_weights),
    "half_precision": (graphs(), _check_half_precision),
    "quantized_weights": (graphs(), _check_quantized_weights),
    "int8": (int8_graphs(), _check),
    "int16": (int16_graphs(), _check_int16),
    "trained": (trained_graphs(), _check_trained),
    "calibrated": (graphs(most_stages=1), _check_calibrated),
    "compared": (graphs(), _check_compared),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_converted_graph_computes_what_its_source_does(kind: str, are_deep: bool) -> None:
    cases, check = KINDS[kind]
    count = COUNTS.get(kind, COUNT) // (1 if are_deep else QUICK_SHARE)
    settings(max_examples=count, derandomize=True, **EXAMPLES)(given(cases)(check))()


@pytest.mark.long
@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", KINDS)
def test_many_converted_graphs_compute_what_their_sources_do(kind: str, part: int, request: Any) -> None:
    """The graphs of a test are split into parts, which are separate tests, so that pytest's workers share
    them. --hypothesis-seed selects other graphs.
    """
    cases, check = KINDS[kind]
    first = int(request.config.getoption("--hypothesis-seed") or 0)
    checked = settings(max_examples=OF_A_PART, database=None, **EXAMPLES)(given(cases)(check))
    seed(len(KINDS) * (PARTS * first + part) + list(KINDS).index(kind))(checked)()


@pytest.mark.parametrize("strict", ["where_ge", "where_gt"])
def test_a_dot_product_right_at_the_threshold_of_a_negated_sign(strict: str) -> None:
    model = FloatModel()
    rows = model.input(1, 32, signature=(-1, 32))
    x = model.dense(model.sign(rows), np.ones((8, 32)), np.full(8, 5.0))
    # A strict comparison becomes a comparison with the next float above the threshold. In a sum with the bias of 5,
    # this float would be rounded to the threshold again.
    x = model.elementwise("SUB", x, model.const(np.full(8, 0.25)))
    x = model.elementwise("NEG", model.elementwise("ADD", x, model.const(np.arange(8) / 4)))
    source = model.finish(model.dense(model.sign(x, strict), np.ones((1, 8))))
    every_dot_product = np.where(np.tri(33, 32, -1) > 0, -1, 1).astype(np.float32)
    converted, _ = _convert(source)
    for expected, actual in zip(_run(source, every_dot_product), _run(converted, every_dot_product), strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("pool", [False, True])
@pytest.mark.parametrize("layer", [False, True])
@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_a_threshold_that_a_sum_with_the_bias_would_lose(direction: float, layer: bool, pool: bool) -> None:
    """For x = 0, the form 2 · round((x + 1) / 2) - 1 is -1. From 1.2e-7 on, it is 1."""
    model = FloatModel()
    x = model.input(1, 2, 2, 32, signature=(-1, 2, 2, 32))
    if layer:
        x = model.conv(model.sign(x), np.ones((32, 1, 1, 32)), np.full(32, 5.0))
    x = model.max_pool(x, 2, 2) if pool else x
    x = model.elementwise("MUL", x, model.const(np.full(32, direction)))
    x = model.elementwise("SUB", x, model.const(direction * np.arange(32)))
    source = model.finish(model.conv(rounded(model, x), np.ones((1, 1, 1, 32))))
    inputs = np.where(np.tri(33, 32, -1) > 0, -1, 1) if layer else np.arange(33)[:, None]
    samples = np.broadcast_to(inputs.reshape(33, 1, 1, -1), (33, 2, 2, 32)).astype(np.float32)
    converted, _ = _convert(source)
    for expected, actual in zip(_run(source, samples), _run(converted, samples), strict=True):
        np.testing.assert_array_equal(actual, expected)
