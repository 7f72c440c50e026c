import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.analysis.signs import find_sign
from litebnn.flatbuffer import read_model
from litebnn.graph import Array
from litebnn.runtime.intermediates import with_outputs
from litebnn.verify.divergence import Divergence, LayerComparison, by_layer, difference
from tests.support.float_models import FloatModel, op_names, sign_weights, sums_near_zero, sums_of_tenths, with_changed
from tests.support.level_spellings import LEVELS
from tests.support.quantized_models import Int8Model


def operand_of(source: bytes, sign: str, sample: Array) -> Array:
    """Runs the source model on a sample. Returns the values whose signs the tensor `sign` holds."""
    model = read_model(source)
    graph = model.graphs[0]
    found = find_sign(graph, next(t for op in graph.ops for t in op.outputs if t.name == sign))
    assert found is not None
    values: Array = litebnn.Interpreter(with_outputs(model, [found.x])).predict(sample)
    return values


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_none_hides_no_difference_of_the_others(odd: float) -> None:
    expected = np.array([odd, 2, -4], np.float32)
    assert difference(expected, expected) == 0
    assert difference(expected, np.array([odd, 2, 4], np.float32)) == 2
    assert difference(expected, np.array([0, 2, -4], np.float32)) > 1e30


@pytest.mark.usefixtures("library")
@settings(max_examples=10)
@given(st.sampled_from([8, 32, 40, 64]), st.integers(5, 9), st.integers(0, 2**16), st.booleans())
def test_signs_that_rounding_turns_are_counted_and_told_from_others(
    channels: int, size: int, seed: int, channels_first: bool
) -> None:
    source, sign, samples = sums_near_zero(channels, size, seed, channels_first)
    converted = litebnn.convert_tflite(source)
    sample = samples[:1]
    values = operand_of(source, sign, sample)
    # The converted model computes exact sums: a sum is either zero, which has a positive sign, or at least 0.1 away
    # from zero.
    flipped = (values < 0) & (values > -0.05)
    divergence = LayerComparison("verify", source, converted).first_divergence([sample])
    if not flipped.any():
        assert divergence is None
        return
    assert divergence is not None
    assert divergence.by_rounding
    assert (divergence.layer, divergence.flipped, divergence.signs) == (sign, flipped.sum(), flipped.size)
    assert divergence.distance == np.abs(values[flipped]).max() < 1e-5
    assert divergence.mean_distance == pytest.approx(np.abs(values).mean(), rel=1e-5)

    broken = with_changed(converted, {"LceBconv2d"}, 4, lambda thresholds: thresholds + 20)
    wrong = LayerComparison("verify", source, broken).first_divergence([sample])
    assert wrong is not None
    assert not wrong.by_rounding
    assert wrong.layer == sign
    assert wrong.distance > 0.05


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("size", [3, 8])
def test_signs_that_the_result_has_negated_in_some_channels(size: int) -> None:
    """A layer with negative multipliers in some channels writes the opposite signs in these channels."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    scaled = model.elementwise("MUL", model.input(1, size, size, 40), model.const(rng.choice([-0.75, 0.5], 40)))
    sign = model.sign(model.elementwise("ADD", scaled, model.const(rng.standard_normal(40))))
    source = model.finish(model.conv(sign, sign_weights(rng, 32, 3, 3, 40)))
    converted = litebnn.convert_tflite(source)
    result = read_model(converted)
    assert any(tensor.name.endswith("/negated") for tensor in result.graphs[0].all_tensors())
    sample = [rng.standard_normal((1, size, size, 40)).astype(np.float32)]
    assert LayerComparison("verify", source, converted).first_divergence(sample) is None

    broken = with_changed(converted, {"ADD", "SUB"}, 1, lambda shift: shift + np.arange(40) % 2)
    wrong = LayerComparison("verify", source, broken).first_divergence(sample)
    assert wrong is not None
    assert wrong.layer == sign.name


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(("height", "width", "flat"), [(5, 7, False), (6, 6, False), (5, 7, True)])
def test_negated_signs_whose_axes_are_in_another_order(height: int, width: int, flat: bool) -> None:
    """Channel-first exporters put the batch norm and the sign between two transposes, or flatten [channels, height,
    width].
    """
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.transpose(model.input(1, height, width, 32), 0, 3, 1, 2)
    scaled = model.elementwise("MUL", x, model.const(rng.choice([-0.75, 0.5], (32, 1, 1))))
    x = model.elementwise("ADD", scaled, model.const(rng.standard_normal((32, 1, 1))))
    sign = model.sign(model.reshape(x, 1, 32 * height * width) if flat else x)
    if flat:
        source = model.finish(model.dense(sign, sign_weights(rng, 8, sign.channels)))
    else:
        source = model.finish(model.conv(model.transpose(sign, 0, 2, 3, 1), sign_weights(rng, 32, 3, 3, 32)))
    converted = litebnn.convert_tflite(source)
    result = read_model(converted)
    assert any("/negated" in tensor.name for tensor in result.graphs[0].all_tensors())
    sample = [rng.standard_normal((1, height, width, 32)).astype(np.float32)]
    comparison = LayerComparison("verify", source, converted)
    assert comparison.first_divergence(sample) is None

    broken = with_changed(converted, {"ADD", "SUB"}, 1, lambda shift: shift + np.arange(32) % 2)
    wrong = LayerComparison("verify", source, broken).first_divergence(sample)
    assert wrong is not None
    assert wrong.layer == sign.name
    assert 0 < wrong.flipped < wrong.signs / 2


@pytest.mark.usefixtures("library")
def test_features_that_a_dense_layer_takes_in_another_order() -> None:
    """Channel-first networks flatten [channels, height, width]; converted models flatten [height, width, channels]."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = sums_of_tenths(model, rng, model.sign(model.input(1, 6, 6, 32)), 32)
    flat = model.reshape(model.transpose(x, 0, 3, 1, 2), 1, 512)
    bias = np.float32(0.1) * rng.choice([-16, -8, 8, 16], 512)
    sign = model.sign(model.elementwise("ADD", flat, model.const(bias)))
    source = model.finish(model.dense(sign, sign_weights(rng, 8, 512)))
    sample = rng.standard_normal((1, 6, 6, 32)).astype(np.float32)
    values = operand_of(source, sign.name, sample)
    flipped = (values < 0) & (values > -0.05)
    divergence = LayerComparison("verify", source, litebnn.convert_tflite(source)).first_divergence([sample])
    assert divergence is not None
    assert divergence.by_rounding
    assert (divergence.layer, divergence.flipped, divergence.signs) == (sign.name, flipped.sum(), 512)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("flattened", ["condition", "signs"])
def test_the_distance_is_known_of_a_comparison_that_is_flattened(flattened: str) -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = sums_of_tenths(model, rng, model.sign(model.input(1, 6, 6, 32)), 64)
    if flattened == "signs":
        x = model.transpose(x, 0, 3, 1, 2)
    flat = model.elementwise("GREATER_EQUAL", x, model.const(0), type="BOOL")
    if flattened == "condition":
        flat = model.op("RESHAPE", [flat, model.const([1, 1024], np.int32)], (1, 1024), type="BOOL")
    rows = model.op("SELECT_V2", [flat, model.const(1), model.const(-1)], flat.shape)
    if flattened == "signs":
        rows = model.reshape(rows, 1, 1024)
    weights = model.const(sign_weights(rng, 1024, 8))
    source = model.finish(model.op("BATCH_MATMUL", [rows, weights], (1, 8)))
    sample = rng.standard_normal((1, 6, 6, 32)).astype(np.float32)
    divergence = LayerComparison("verify", source, litebnn.convert_tflite(source)).first_divergence([sample])
    assert divergence is not None  # a twentieth of sums of 288 are zero, and rounding leaves many below
    assert divergence.by_rounding
    assert 0 < divergence.distance < 1e-5


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("ending", ["", ";norm/mul;norm/add"])
@pytest.mark.parametrize("taken", ["threshold", "negative scales"])
def test_a_float_layer_that_takes_in_what_stands_after_its_pooling(taken: str, ending: str) -> None:
    """The conversion changes the weights of the float layer, so its output is not compared, but later tensors are."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    layer = model.conv(model.input(1, 9, 9, 3), rng.standard_normal((32, 3, 3, 3)), rng.standard_normal(32))
    layer.name += ending
    if taken == "threshold":
        scaled = model.elementwise("MUL", model.max_pool(layer, 2, 2), model.const(rng.uniform(1, 3, 32)))
        added = model.elementwise("ADD", scaled, model.const(rng.standard_normal(32)))
        outputs = [model.conv(model.sign(added), sign_weights(rng, 8, 3, 3, 32))]
    else:
        scaled = model.elementwise("MUL", layer, model.const(rng.choice([-0.75, 0.5], 32)))
        pooled = model.max_pool(scaled, 2, 2)
        outputs = [model.conv(model.sign(pooled), sign_weights(rng, 8, 3, 3, 32)), pooled]
    source = model.finish(*outputs)
    converted = litebnn.convert_tflite(source)
    first = next(op for op in read_model(converted).ops() if op.name == "CONV_2D")
    before = next(op for op in read_model(source).ops() if op.name == "CONV_2D")
    assert any(not np.array_equal(first.input(i).array, before.input(i).array) for i in (1, 2))
    comparison = LayerComparison("compare", source, converted)
    assert comparison.layers > 1
    sample = rng.standard_normal((1, 9, 9, 3)).astype(np.float32)
    assert list(map(str, comparison.divergences([sample]))) == []


@pytest.mark.usefixtures("library")
def test_a_float_layer_whose_image_is_no_longer_split() -> None:
    """The source quantizes the layer's output before a BATCH_TO_SPACE_ND, which the conversion removes."""
    rng = np.random.default_rng(0)
    model = Int8Model()
    sign = model.sign(model.input(1, 6, 6, 32))
    parts = model.conv(model.space_to_batch(sign, [2, 2], [(2, 2), (2, 2)]), rng.standard_normal((8, 3, 3, 32)))
    levels = model.quantize8(parts, (0.5, 0))
    joined = model.as_(levels, model.batch_to_space(levels, [2, 2], [(0, 0), (0, 0)]), 2)
    binary = model.conv(sign, sign_weights(rng, 8, 3, 3, 32))
    source = model.finish(model.dequantize8(joined), binary)
    converted = litebnn.convert_tflite(source)
    assert "BATCH_TO_SPACE_ND" not in op_names(converted)
    comparison = LayerComparison("compare", source, converted)
    assert list(map(str, comparison.divergences([rng.standard_normal((1, 6, 6, 32)).astype(np.float32)]))) == []


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("layer", ["padded", "unpadded", "dense"])
@pytest.mark.parametrize("spelling", ["dorefa", "ternary_rounded", "booleans"])
def test_levels_that_fall_with_what_the_result_takes_them_from(spelling: str, layer: str) -> None:
    """In the source, a TRANSPOSE lies between a NEG and a quantizer with few levels. The converted model computes the
    levels from the input of the NEG.
    """
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.transpose(model.elementwise("NEG", model.input(1, 6, 6, 32)), 0, 3, 1, 2)
    x = LEVELS[spelling](model, x)
    if layer == "dense":
        rows, matrix = model.reshape(x, 1, 1152), model.const(sign_weights(rng, 8, 1152))
        source = model.finish(model.op("BATCH_MATMUL", [rows, matrix], (1, 8), adj_x=False, adj_y=True))
    else:
        x = model.transpose(x, 0, 2, 3, 1)
        source = model.finish(model.conv(x, sign_weights(rng, 8, 3, 3, 32), same=layer == "padded"))
    converted = litebnn.convert_tflite(source)
    assert "LceBconv2d" in op_names(converted)
    sample = [rng.standard_normal((1, 6, 6, 32)).astype(np.float32)]
    comparison = LayerComparison("compare", source, converted)
    assert any(pair.levels for pair in comparison._pairs)
    assert list(map(str, comparison.divergences(sample))) == []

    broken = with_changed(converted, {"ADD", "SUB"}, 1, lambda shift: shift + 0.25)
    wrong = LayerComparison("compare", source, broken).first_divergence(sample)
    assert wrong is not None
    assert 0 < wrong.flipped < wrong.signs / 4
    assert not wrong.by_rounding


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(("least", "most"), [(-2.0, 0.7), (0.3, 2.0)])
def test_levels_that_are_not_all_reached(least: float, most: float) -> None:
    """In the source, a TRANSPOSE lies between a clamp and a quantizer with four levels. The converted model has a sign
    for each of the quantizer's thresholds within the clamp.
    """
    rng = np.random.default_rng(0)
    model = FloatModel()
    bounded = model.elementwise("MINIMUM", model.input(1, 6, 6, 32), model.const(most))
    x = model.transpose(model.elementwise("MAXIMUM", bounded, model.const(least)), 0, 3, 1, 2)
    x = model.transpose(LEVELS["dorefa"](model, x), 0, 2, 3, 1)
    source = model.finish(model.conv(x, sign_weights(rng, 8, 3, 3, 32)))
    converted = litebnn.convert_tflite(source)
    bits = next(op.input(0) for op in read_model(converted).ops() if op.name == "LceBconv2d")
    assert bits.channels == 2
    sample = [rng.standard_normal((1, 6, 6, 32)).astype(np.float32)]
    comparison = LayerComparison("compare", source, converted)
    assert list(map(str, comparison.divergences(sample))) == []
    gap, wrong = comparison.given_the_sources_signs(sample)
    assert wrong is None
    assert gap < 1e-6

    broken = with_changed(converted, {"ADD", "SUB"}, 1, lambda shift: shift + 0.25)
    flipped = LayerComparison("compare", source, broken).first_divergence(sample)
    assert flipped is not None
    assert 0 < flipped.flipped < flipped.signs / 4


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("form", ["two values", "per channel", "levels"])
def test_few_numbers_that_stay_floats_are_flipped_by_rounding_as_signs_are(form: str) -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = sums_of_tenths(model, rng, model.sign(model.input(1, 6, 6, 32)), 64)
    if form == "levels":
        few = LEVELS["ternary_rounded"](model, model.elementwise("ADD", x, model.const(0.1)))
    else:
        few = model.two_values(x, -0.5, 2.0) if form == "two values" else model.sign(x, "where_channels")
    source = model.finish(model.conv(few, rng.standard_normal((8, 3, 3, 64))), few)
    samples = rng.standard_normal((4, 1, 6, 6, 32)).astype(np.float32)
    converted = litebnn.convert_tflite(source)
    comparison = LayerComparison("verify", source, converted)
    found = [one for sample in samples for one in comparison.divergences([sample]) if one.layer == few.name]
    assert found
    assert all(one.by_rounding and one.flipped < one.signs / 4 for one in found)

    layer = next(op for op in read_model(converted).ops() if op.name == "LceBconv2d")
    broken = with_changed(converted, {"LceBconv2d"}, 4 if layer.optional(3) is None else 3, lambda offset: offset + 1)
    wrong = [*LayerComparison("verify", source, broken).divergences([samples[0]])]
    assert not any(one.by_rounding for one in wrong if one.layer == few.name)
    assert any(one.layer == few.name for one in wrong)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("values", [(0.0, 1.0), (1.0, 0.0), (-0.5, 2.0)])
@pytest.mark.parametrize("comparison", ["GREATER_EQUAL", "LESS"])
def test_booleans_that_rounding_turns(comparison: str, values: tuple[float, float]) -> None:
    """The source selects between two values by comparing x with 0. In the converted model, the layer reads a sign
    instead of the two values: the sign of the comparison, or the opposite sign.
    """
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = sums_of_tenths(model, rng, model.sign(model.input(1, 6, 6, 32)), 64)
    two = model.two_values(x, *values, comparison)
    source = model.finish(model.conv(two, sign_weights(rng, 8, 3, 3, 64)))
    sample = rng.standard_normal((1, 6, 6, 32)).astype(np.float32)
    divergence = LayerComparison("verify", source, litebnn.convert_tflite(source)).first_divergence([sample])
    assert divergence is not None
    assert divergence.by_rounding
    assert 0 < divergence.flipped < divergence.signs / 8


@pytest.mark.usefixtures("library")
def test_signs_that_are_spread_over_an_image_and_flattened() -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    largest = model.op("REDUCE_MAX", [x, model.const((1, 2), np.int32)], (1, 1, 1, 32), keep_dims=True)
    condition = model.elementwise("GREATER", largest, model.const(1.5), type="BOOL")
    signs = model.op("SELECT_V2", [condition, model.const(1), model.const(-np.ones((1, 4, 4, 32)))], x.dims)
    flat = model.reshape(signs, 1, 512)
    source = model.finish(model.dense(flat, sign_weights(rng, 8, 512)), flat)
    broken = with_changed(litebnn.convert_tflite(source), {"ADD", "SUB"}, 1, lambda shift: shift + 0.5)
    comparison = LayerComparison("verify", source, broken)
    found = [*comparison.divergences([rng.standard_normal((1, 4, 4, 32)).astype(np.float32)])]
    assert {one.layer for one in found} >= {signs.name, flat.name}
    assert not any(one.by_rounding for one in found)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("flipped", [False, True])
def test_two_conversions_of_a_model_do_not_differ(flipped: bool) -> None:
    """Compares a model's conversions with and without `larq_compatible`. The two conversions have tensors that the
    converter's rules named, packed signs with permuted axes, and several tensors of the same name.
    """
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.transpose(model.input(1, 6, 6, 32), 0, 3, 1, 2)
    x = model.transpose(model.sign(x), 0, 2, 3, 1)
    parts = [model.conv(x, sign_weights(rng, 32, 3, 3, 32), same=True) for _ in range(2)]
    joined = model.op("CONCATENATION", parts, (1, 6, 6, 64), axis=3, fused_activation_function=0)
    scaled = model.elementwise("MUL", joined, model.const(rng.choice([-0.5, 2.0], 64)))
    x = model.sign(model.elementwise("ADD", scaled, model.const(rng.standard_normal(64))))
    source = model.finish(model.conv(x, sign_weights(rng, 8, 3, 3, 64)), scaled)
    pair = [litebnn.convert_tflite(source, larq_compatible=option) for option in (flipped, not flipped)]
    sample = rng.standard_normal((1, 6, 6, 32)).astype(np.float32)
    comparison = LayerComparison("compare", *pair)
    assert comparison.layers > 4
    assert list(map(str, comparison.divergences([sample]))) == []


def test_what_samples_show_is_added_up_layer_by_layer() -> None:
    found = [
        Divergence("b", 1, 100, 1e-7, 1.0),
        Divergence("a", 2, 50, 3e-7, 2.0),
        Divergence("b", 2, 100, 2e-7, 3.0),
    ]
    assert by_layer(found) == (Divergence("b", 3, 200, 2e-7, 2.0, 2), Divergence("a", 2, 50, 3e-7, 2.0))
    line = str(by_layer(found)[0])
    assert line == '"b": 3 signs of 200 flipped, at 2.0e-07 from the threshold at most (2.0e+00 on average)'
    assert str(Divergence("c", 1, 9, 0.0, 1.0)).startswith('"c": 1 sign of 9 flipped')
    assert not Divergence("c").by_rounding
