from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.contract import Padding, PadValues
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Tensor, constant
from litebnn.rules.binarize.absorb_one_padding import absorb_one_padding
from litebnn.rules.binarize.binarize_layers import binarize_layers
from litebnn.rules.binarize.read_as_signs import read_as_signs
from litebnn.rules.binarize.undo_space_to_batch import undo_space_to_batch
from litebnn.rules.build.bconv import bconv_options
from litebnn.rules.build.notes import Notes
from litebnn.rules.canonical.remove_dead_ops import remove_dead_ops
from litebnn.rules.thresholds.lower_thresholds import lower_thresholds
from litebnn.rules.thresholds.merge_signs import merge_signs
from litebnn.rules.thresholds.work_on_bits import work_on_bits
from litebnn.verify.divergence import LayerComparison
from tests.support.float_models import FloatModel, assert_same_values, binarized, op_names, rewritten, sign_weights
from tests.support.level_spellings import LEVELS, booleans, dorefa, ternary

RNG = np.random.default_rng(0)
PACKING = ["CONCATENATION", "ADD", "LceQuantize"]
TO_BITS = (read_as_signs, work_on_bits, remove_dead_ops, binarize_layers, absorb_one_padding)
TO_BITS_AND_LOWERED = (*TO_BITS, merge_signs, lower_thresholds, remove_dead_ops)


@pytest.mark.parametrize("spelling", LEVELS)
@pytest.mark.parametrize("same", [False, True])
def test_a_layer_of_levels_is_one_of_signs(spelling: str, same: bool) -> None:
    model = FloatModel()
    levels = LEVELS[spelling](model, model.input(2, 5, 6, 40))
    source = model.finish(model.conv(levels, sign_weights(RNG, 8, 3, 3, 40), np.arange(8), same=same))
    result = rewritten(source, *TO_BITS_AND_LOWERED)
    assert op_names(result)[-3:] == ["ADD", "LceQuantize", "LceBconv2d"]
    options = bconv_options(result.graphs[0].ops[-1])
    assert options.channels_in == (80 if "ternary" in spelling else 120)
    expected = (Padding.SAME, PadValues.ONE) if same else (Padding.VALID, PadValues.ZERO)
    assert (options.padding, options.pad_values) == expected
    assert_same_values(source, result)


def test_zeros_that_an_op_puts_around_levels_are_ones_around_signs() -> None:
    model = FloatModel()
    padded = model.pad(dorefa(model, model.input(1, 5, 6, 32)), [(2, 0), (1, 1)])
    source = model.finish(model.conv(padded, sign_weights(RNG, 8, 3, 3, 32), stride=(2, 2)))
    result = rewritten(source, *TO_BITS_AND_LOWERED)
    assert op_names(result) == [PACKING[0], "MUL", *PACKING[1:], "LceBconv2d"]
    options = bconv_options(result.graphs[0].ops[-1])
    assert (options.explicit_padding, options.pad_values) == (((2, 0), (1, 1)), PadValues.ONE)
    assert_same_values(source, result)


@pytest.mark.parametrize(("padded", "cropped"), [(2, 0), (2, 1), (0, 1)])
def test_dilations_that_are_written_as_a_space_to_batch_pair(padded: int, cropped: int) -> None:
    model = FloatModel()
    level = dorefa(model, model.input(1, 8, 8, 32))
    blocks = model.space_to_batch(level, (2, 2), ((padded, 2), (2, 2)))
    spread = model.conv(blocks, sign_weights(RNG, 8, 3, 3, 32), np.arange(8))
    source = model.finish(model.batch_to_space(spread, (2, 2), ((cropped, 1), (0, 0))))
    result = rewritten(source, undo_space_to_batch, *TO_BITS_AND_LOWERED)
    options = bconv_options(result.graphs[0].ops[-1])
    assert (options.dilation_height_factor, options.dilation_width_factor) == (2, 2)
    assert options.pad_values == PadValues.ONE
    assert_same_values(source, result)


@pytest.mark.parametrize("kind", ["dense", "matrix", "transposed matrix"])
def test_dense_layers_after_pooled_and_flattened_levels(kind: str) -> None:
    model = FloatModel()
    flat = model.reshape(model.max_pool(dorefa(model, model.input(2, 4, 6, 32)), 2, 2), 2, 192)
    weights = sign_weights(RNG, 16, 192)
    if kind == "dense":
        output = model.dense(flat, weights, np.arange(16), activation="relu")
    else:
        matrix = model.const(weights if kind.startswith("t") else weights.T)
        output = model.op("BATCH_MATMUL", [flat, matrix], (2, 16), adj_x=False, adj_y=kind.startswith("t"))
    source = model.finish(output)
    result = rewritten(source, *TO_BITS_AND_LOWERED)
    names = op_names(result)
    assert names[:5] == ["MAX_POOL_2D", "RESHAPE", *PACKING]
    assert names[5:] == ["RESHAPE", "LceBconv2d", "RESHAPE", *["RELU"] * (kind == "dense")]
    assert_same_values(source, result)


def test_layers_of_the_same_levels_read_the_same_bits() -> None:
    model = FloatModel()
    pooled = model.max_pool(ternary(model, model.input(1, 8, 8, 32)), 2, 2)
    layers = [model.conv(pooled, sign_weights(RNG, 8, 3, 3, 32), same=True) for _ in range(3)]
    source = model.finish(*layers, model.elementwise("NEG", pooled))
    result = rewritten(source, *TO_BITS_AND_LOWERED)
    assert op_names(result).count("LceQuantize") == 1
    assert op_names(result).count("MAX_POOL_2D") == 2
    assert op_names(result).count("LceBconv2d") == 3
    assert_same_values(source, result)


def test_weights_that_are_computed_from_constants() -> None:
    model = FloatModel()
    kernel = model.sign(model.const(RNG.standard_normal((8, 3, 3, 32))))
    scaled = model.elementwise("MUL", kernel, model.const(2.0 ** RNG.integers(-2, 2, (8, 1, 1, 1))))
    source = model.finish(model.conv(dorefa(model, model.input(1, 5, 6, 32)), scaled))
    assert_same_values(source, result := rewritten(source, *TO_BITS_AND_LOWERED))
    assert op_names(result)[-1] == "LceBconv2d"


@pytest.mark.parametrize(
    ("levels", "change", "reason"),
    [
        (
            dorefa,
            lambda w: np.where(np.arange(w.size).reshape(w.shape) == 5, 0, w),
            "weights is 0; with assume_nonzero",
        ),
        (dorefa, lambda w: np.where(np.arange(w.size).reshape(w.shape) == 5, 0.9 * w, w), "not ±alpha"),
        (dorefa, lambda w: w[..., :32], "it has groups"),
        (lambda m, x: m.elementwise("ADD", booleans(m, x), m.const(1)), lambda w: w, "padded with 0, which is none"),
    ],
)
def test_other_layers_of_levels_stay_float(levels: Any, change: Any, reason: str) -> None:
    model = FloatModel()
    weights = change(sign_weights(RNG, 8, 3, 3, 64)).astype(np.float32)
    built = model.model(model.conv(levels(model, model.input(1, 6, 6, 64)), weights, same=True))
    notes = Notes(built)
    assert not read_as_signs(built.graphs[0], notes)
    assert reason in " ".join(notes.layers[0].reasons)


@pytest.mark.parametrize("rows", [(3,), (-1,), (-1, 3), (-1, -1)])
@pytest.mark.parametrize("kind", ["matrix", "turned input", "batch of matrices", "larger matrix"])
def test_products_of_levels_with_other_than_one_matrix_stay_float(kind: str, rows: tuple[int, ...]) -> None:
    model = FloatModel()
    x = dorefa(model, model.input(*(1 if size < 0 else size for size in rows), 32, signature=(*rows, 32)))
    weights = sign_weights(RNG, 8, 64 if kind.startswith("larger") else 32).T
    weights = np.stack([weights, weights]) if kind.startswith("batch") else weights
    options = {"adj_x": kind.startswith("turned"), "adj_y": False}
    built, notes = binarized(model, model.op("BATCH_MATMUL", [x, model.const(weights)], (*rows, 8), **options))
    is_binary = kind == "matrix" and rows != (-1, -1)
    assert ("LceBconv2d" in op_names(built)) == is_binary
    why = "more than one" if kind == "matrix" else "rows of 64" if kind.startswith("larger") else "no product with a"
    assert is_binary or why in " ".join(notes.layers[0].reasons)


def test_a_layer_of_levels_with_a_bias_that_is_computed_stays_float() -> None:
    model = FloatModel()
    output = model.conv(dorefa(model, model.input(1, 6, 6, 32)), sign_weights(RNG, 8, 3, 3, 32), np.zeros(8))
    bias = model.input(8)
    model.graph.set_input(model.graph.ops[-1], 2, bias)
    built = model.model(output)
    notes = Notes(built)
    assert not read_as_signs(built.graphs[0], notes)
    assert list(notes.layers[0].reasons) == [f'its bias "{bias.name}" is not a float constant']


def test_a_quantized_layer_is_left_alone() -> None:
    model = FloatModel()
    x = dorefa(model, model.input(1, 6, 6, 32))
    weights = [model.const(sign_weights(RNG, 8, 3, 3, 32)), model.const(np.zeros(8))]
    output = model.op("CONV_2D", [x, *weights], (1, 4, 4, 8), type="INT8", padding=1, stride_h=1, stride_w=1)
    built = model.model(output)
    assert not read_as_signs(built.graphs[0], Notes(built))


def network(thirds: bool, channels_first: bool, seed: int) -> bytes:
    """Makes a network of two convolutions and a dense layer, whose inputs are quantized to four levels (2 bits). Batch
    norms and max pools follow the convolutions."""
    rng = np.random.default_rng(seed)
    model = FloatModel()

    def quantized(x: Tensor) -> Tensor:
        x = model.transpose(x, 0, 3, 1, 2) if channels_first else x
        level = dorefa(model, model.elementwise("MUL", x, model.const(rng.uniform(0.01, 0.05))))
        level = model.elementwise("MUL", level, model.const(1 / 3 if thirds else 0.5))
        return model.transpose(level, 0, 2, 3, 1) if channels_first else level

    x = model.input(1, 8, 8, 3)
    for channels in (32, 40):
        x = model.conv(x, rng.standard_normal((channels, 3, 3, x.channels)), same=True) if x.channels == 3 else x
        x = model.conv(quantized(x), np.float32(0.1) * sign_weights(rng, channels, 3, 3, x.channels), same=True)
        scale, offset = rng.uniform(0.5, 2, channels), rng.standard_normal(channels)
        x = model.elementwise("ADD", model.elementwise("MUL", x, model.const(scale)), model.const(offset))
        x = model.max_pool(x, 2, 2)
    flat = model.reshape(quantized(x), 1, 160)
    return model.finish(model.dense(flat, np.float32(0.3) * sign_weights(rng, 8, 160)))


@settings(max_examples=10)
@given(thirds=st.booleans(), channels_first=st.booleans(), seed=st.integers(0, 2**16))
def test_a_converted_network_is_verified_and_compared_layer_by_layer(
    thirds: bool, channels_first: bool, seed: int
) -> None:
    source = network(thirds, channels_first, seed)
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert [layer.binary for layer in report.layers] == [False, True, True, True]
    assert op_names(converted).count("LceBconv2d") == 3
    layers = LayerComparison("test", source, converted)
    samples = np.random.default_rng(seed).standard_normal((4, 1, 8, 8, 3)).astype(np.float32)
    for sample in samples:
        divergence = layers.first_divergence([sample])
        assert divergence is None or divergence.by_rounding, str(divergence)
    names = {pair.source.tensor.name for pair in layers._pairs if pair.levels}
    assert len(names) == 3


def test_levels_of_other_values_are_found_by_comparing() -> None:
    source = network(thirds=False, channels_first=False, seed=1)
    built = read_model(litebnn.convert_tflite(source))
    shifts = [op for op in built.graphs[0].ops if op.name == "ADD" and op.output.name.endswith("part0")]
    assert shifts
    numbers = shifts[0].input(1)
    assert numbers.array is not None
    built.graphs[0].set_input(shifts[0], 1, constant("other", numbers.array + np.float32(0.5)))
    layers = LayerComparison("test", source, write_model(built))
    sample = np.random.default_rng(0).standard_normal((1, 8, 8, 3)).astype(np.float32)
    divergence = layers.first_divergence([sample])
    assert divergence is not None
    assert divergence.flipped > 0
    assert not divergence.by_rounding


@pytest.mark.parametrize("name", ["net/levels", "net/levels/Round"])
def test_a_layer_that_is_called_levels_is_compared_as_any(name: str) -> None:
    """If a float layer reads a quantizer's levels too, the converted model still has the tensor of the levels, with its
    old name."""
    model = FloatModel()
    level = dorefa(model, model.input(1, 6, 6, 32))
    level.name = name
    wide = model.conv(level, RNG.standard_normal((8, 3, 3, 32)))
    sign = model.sign(wide)
    sign.name = f"{name}/Sign"
    binary = model.conv(sign, sign_weights(RNG, 8, 3, 3, 8))
    source = model.finish(model.conv(level, sign_weights(RNG, 8, 3, 3, 32)), wide, binary)
    layers = LayerComparison("test", source, litebnn.convert_tflite(source))
    compared = [(pair.source.tensor.name, pair.result.origin.signs, not pair.levels) for pair in layers._pairs]
    assert (name, 0, True) in compared
    assert (name, 96, False) in compared
    assert (f"{name}/Sign", 8, True) in compared
    assert layers.first_divergence([RNG.standard_normal((1, 6, 6, 32)).astype(np.float32)]) is None


def centered(model: FloatModel, x: Tensor) -> Tensor:
    return model.elementwise("SUB", dorefa(model, x), model.const(1.5))


@pytest.mark.parametrize(("levels", "values"), [(dorefa, PadValues.ONE), (centered, PadValues.ZERO)])
def test_the_padding_of_two_ops_is_the_padding_of_one(levels: Any, values: PadValues) -> None:
    """The source pads levels with zeros. For DoReFa's levels, all signs are +1 at zero, so the result pads with ones.
    Centered levels are symmetric around zero, so the result pads with zeros."""
    model = FloatModel()
    padded = model.pad(levels(model, model.input(1, 5, 6, 32)), [(2, 0), (1, 1)])
    source = model.finish(model.conv(padded, sign_weights(RNG, 8, 3, 3, 32), same=True))
    result = read_model(litebnn.convert_tflite(source))
    assert "PADV2" not in op_names(result)
    options = bconv_options(result.graphs[0].ops[-1])
    assert (options.explicit_padding, options.pad_values) == (((3, 1), (2, 2)), values)
    assert_same_values(source, result)


@pytest.mark.parametrize("spelling", LEVELS)
def test_a_transposed_convolution_of_levels_is_binary(spelling: str) -> None:
    model = FloatModel()
    levels = LEVELS[spelling](model, model.input(1, 4, 5, 32))
    source = model.finish(model.transposed_conv(levels, sign_weights(RNG, 8, 3, 3, 32)))
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert [layer.binary for layer in report.layers] == [True]
    assert_same_values(source, read_model(converted))


@pytest.mark.parametrize(("stride", "is_binary"), [(1, True), (2, False)])
def test_same_padding_of_an_unknown_size(stride: int, is_binary: bool) -> None:
    model = FloatModel()
    x = dorefa(model, model.input(1, 8, 8, 32, signature=(1, -1, -1, 32)))
    built, notes = binarized(model, model.conv(x, sign_weights(RNG, 8, 3, 3, 32), same=True, stride=(stride, stride)))
    assert ("LceBconv2d" in op_names(built)) == is_binary
    assert is_binary or "depends on a size that is not known" in " ".join(notes.layers[0].reasons)
