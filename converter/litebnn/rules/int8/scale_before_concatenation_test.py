from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.analysis.quantization import Range
from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model
from litebnn.graph import Model, Tensor
from litebnn.rules.build.notes import Notes
from litebnn.rules.canonical.remove_dead_ops import remove_dead_ops
from litebnn.rules.int8.scale_before_concatenation import scale_before_concatenation
from tests.support.float_models import FloatModel, assert_same_values, op_names, sign_weights

# Windows of 2x2 with SAME padding.
POOL = {
    "filter_width": 2,
    "filter_height": 2,
    "stride_w": 2,
    "stride_h": 2,
    "padding": 0,
    "fused_activation_function": 0,
}


def scaled(model: Model, *ranged: Tensor, limits: Range = (-1.0, 2.0)) -> Notes:
    """Runs the rule on a model whose inputs and whose tensors `ranged` are to become int8."""
    graph = model.graphs[0]
    notes = Notes(model, ranges=dict.fromkeys([*graph.inputs, *ranged], limits))
    while scale_before_concatenation(graph, notes):
        pass
    remove_dead_ops(graph, notes)
    return notes


@settings(max_examples=20)
@given(st.lists(st.integers(1, 5), min_size=2, max_size=4), st.booleans(), st.booleans(), st.integers(0, 99))
def test_each_part_is_scaled_by_its_own_constants(sizes: list[int], is_first: bool, is_vector: bool, seed: int) -> None:
    model, rng = FloatModel(), np.random.default_rng(seed)
    whole = model.concatenated(*(model.input(1, 3, 2, size) for size in sizes))
    factors = model.const(rng.integers(-8, 8, sum(sizes) if is_vector else 1) / 4)
    product = model.elementwise("MUL", *((factors, whole) if is_first else (whole, factors)))
    source = model.finish(product)
    built = read_model(source)
    notes = scaled(built, built.graphs[0].outputs[0])
    assert op_names(built) == [*["MUL"] * len(sizes), "CONCATENATION"]
    assert {notes.ranges[part] for part in built.graphs[0].ops[-1].inputs if part} == {(-1.0, 2.0)}
    assert_same_values(source, built)


@pytest.mark.parametrize("case", ["float", "zero", "constant part", "one part", "activation", "tensor", "rows"])
def test_other_products_stay(case: str) -> None:
    model = FloatModel()
    parts = [model.input(1, 2, 4) for _ in range(1 if case == "one part" else 2)]
    parts += [model.const(np.ones((1, 2, 4)))] if case == "constant part" else []
    whole = model.concatenated(*parts)
    factors = {"tensor": model.input(1, 2, 8), "rows": model.const(np.ones((1, 2, 1)))}
    activation = "relu" if case == "activation" else "none"
    factor = factors.get(case, model.const(np.ones(whole.channels)))
    product = model.elementwise("MUL", whole, factor, activation=activation)
    built = model.model(product)
    scaled(built, *([] if case == "float" else [product]), limits=(0.0, 0.0 if case == "zero" else 2.0))
    assert op_names(built) == ["CONCATENATION", "MUL"]


@pytest.mark.parametrize("pool", ["MAX_POOL_2D", "AVERAGE_POOL_2D"])
def test_pools_move_to_the_parts(pool: str) -> None:
    model = FloatModel()
    whole = model.concatenated(model.input(1, 8, 6, 3), model.input(1, 8, 6, 2))
    pooled = model.op(pool, [whole], (1, 4, 3, 5), **POOL)
    pooled = model.op(pool, [pooled], (1, 2, 2, 5), **POOL)
    source = model.finish(model.elementwise("MUL", pooled, model.const(np.arange(5) / 4)))
    built = read_model(source)
    scaled(built, built.graphs[0].outputs[0])
    assert op_names(built) == [*[pool, pool, "MUL"] * 2, "CONCATENATION"]
    assert_same_values(source, built)


def test_a_product_with_a_gate_may_read_the_whole() -> None:
    model = FloatModel()
    whole = model.concatenated(model.input(1, 2, 4), model.input(1, 2, 3))
    product = model.elementwise("MUL", whole, model.const(np.arange(7)))
    gated = model.elementwise("MUL", whole, model.input(1, 2, 7))
    built = model.model(product, gated)
    scaled(built, product, gated)
    assert op_names(built) == ["CONCATENATION", "MUL", "MUL", "CONCATENATION", "MUL"]


@pytest.mark.parametrize(("products", "is_too_many"), [(30, False), (100, True)])
def test_products_are_charged_for_each_part(products: int, is_too_many: bool) -> None:
    """Without this limit, a file of a few kilobytes could get a million ops."""
    model = FloatModel()
    whole = model.concatenated(*(model.input(1, 1) for _ in range(64)))
    outputs = [model.elementwise("MUL", whole, model.const(2.0)) for _ in range(products)]
    built = read_model(model.finish(*outputs))
    refusal = pytest.raises(ConversionError, match="far more is computed") if is_too_many else nullcontext()
    with refusal:
        scaled(built, *built.graphs[0].outputs)


def test_a_pool_that_others_read_stays() -> None:
    model = FloatModel()
    whole = model.concatenated(model.input(1, 8, 6, 3), model.input(1, 8, 6, 2))
    pooled = model.op("MAX_POOL_2D", [whole], (1, 4, 3, 5), **POOL)
    product = model.elementwise("MUL", pooled, model.const(np.arange(5) / 4))
    built = model.model(product, model.elementwise("RELU", pooled))
    scaled(built, product)
    assert op_names(built) == ["CONCATENATION", "MAX_POOL_2D", "MUL", "RELU"]


def test_a_narrow_part_of_a_dense_block_keeps_its_levels() -> None:
    model, rng = FloatModel(), np.random.default_rng(0)
    x = model.input(1, 6, 6, 32)
    narrow = model.conv(x, rng.uniform(-0.01, 0.01, (8, 1, 1, 32)))
    wide = model.conv(model.sign(x), sign_weights(rng, 32, 1, 1, 32))
    factors = np.repeat([10.0, 0.01], [8, 32])
    product = model.elementwise("MUL", model.concatenated(narrow, wide), model.const(factors))
    source = model.finish(model.op("MAX_POOL_2D", [product], (1, 3, 3, 40), **POOL))
    images = [rng.uniform(-1, 1, x.dims).astype(np.float32) for _ in range(4)]
    converted = litebnn.convert_tflite(source, representative_dataset=images)
    assert op_names(read_model(converted)).count("MUL") == 2
    models = litebnn.convert_tflite(source), converted
    expected, found = (litebnn.Interpreter(each).predict(images[0])[..., :8] for each in models)
    assert np.abs(found - expected).max() < 0.03 * np.abs(expected).max()
