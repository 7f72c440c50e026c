import numpy as np
import pytest

import litebnn
from litebnn.contract import Activation
from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.rules.phases import rules_of
from litebnn.rules.thresholds.move_thresholds import move_thresholds
from litebnn.rules.thresholds.recognize_signs import recognize_signs
from tests.support.float_models import (
    FloatModel,
    assert_same_values,
    binarized,
    op_names,
    rewritten,
    run_pass,
    sign_weights,
)
from tests.support.quantized_models import EXACT_GRID, Int8Model

RNG = np.random.default_rng(0)
SLOPES = 2.0 ** -(np.arange(32) % 3)
SHIFTS = RNG.choice([-4.5, -1.5, -0.5, 0.5, 2.5], 32)


def names_of(scale: object, shift: object, *, one_padding: bool = False) -> list[str]:
    model = FloatModel()
    x = model.elementwise("MUL", model.input(1, 8, 8, 32), model.const(scale))
    x = model.sign(model.elementwise("ADD", x, model.const(shift)))
    if one_padding:
        x = model.pad(x, [(1, 1), (1, 1)], 1.0)
    built, _ = binarized(model, model.conv(x, sign_weights(RNG, 8, 3, 3, 32)))
    return op_names(built)


def test_a_batch_norm_before_a_sign_is_one_addition() -> None:
    assert names_of(np.full(32, 3), np.arange(32)) == ["ADD", "LceQuantize", "LceBconv2d"]
    assert names_of(np.where(np.arange(32) < 3, -1, 1), np.arange(32)) == ["ADD", "LceQuantize", "LceBconv2d"]


def test_a_positive_scale_alone_means_nothing_to_a_sign() -> None:
    assert names_of(np.full(32, 3), np.zeros(1)) == ["LceQuantize", "LceBconv2d"]


def test_where_a_channel_cannot_be_negated_its_direction_stays() -> None:
    negative = np.where(np.arange(32) < 3, -1, 1)
    assert names_of(negative, np.ones(32), one_padding=True) == ["MUL", "ADD", "LceQuantize", "LceBconv2d"]
    assert names_of(negative, np.zeros(32), one_padding=True) == ["MUL", "LceQuantize", "LceBconv2d"]
    assert names_of(np.full(32, -2), np.ones(32), one_padding=True) == ["MUL", "ADD", "LceQuantize", "LceBconv2d"]


def test_a_scale_of_zero_is_a_sign_that_never_changes() -> None:
    assert names_of(np.zeros(32), np.ones(32)) == ["MUL", "ADD", "LceQuantize", "LceBconv2d"]


@pytest.mark.parametrize("form", ["where_ge", "where_gt", "where_lt", "where_le"])
@pytest.mark.parametrize("padded", [False, True])
def test_exact_sums_turn_where_the_source_does(form: str, padded: bool) -> None:
    """The random inputs are multiples of 1/8, so that some sums are equal to the threshold 2. A strict comparison with
    2 is a comparison with the next float above 2. A sum of this float and the constant 1000 would be rounded to 1002.
    """
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    y = model.elementwise("MUL", x, model.const(np.where(np.arange(32) % 3, 0.5, -2.0) * (np.arange(32) > 1)))
    y = model.elementwise("ADD", y, model.const(np.arange(32) % 5 - 1000.0))
    y = model.elementwise("ADD", y, model.const(np.full(32, 1000.0)))
    sign = model.sign(y, form, 2.0)
    sign = model.pad(sign, [(1, 1), (1, 1)], 1.0) if padded else sign
    source = model.finish(model.conv(sign, sign_weights(RNG, 8, 3, 3, 32)))
    result = read_model(litebnn.convert_tflite(source))
    assert op_names(result).count("ADD") + op_names(result).count("SUB") == 1
    assert_same_values(source, result)


def after_prelu(model: FloatModel, x: Tensor, slopes: np.ndarray, scale: float) -> Tensor:
    x = model.op("PRELU", [x, model.const(slopes.reshape(1, 1, -1))], x.dims)
    return model.elementwise("ADD", model.elementwise("MUL", x, model.const(scale)), model.const(SHIFTS))


@pytest.mark.parametrize("scale", [0.5, -2.0])
def test_a_prelu_only_moves_the_threshold(scale: float) -> None:
    model = FloatModel()
    source = model.finish(model.sign(after_prelu(model, model.input(1, 4, 4, 32), SLOPES, scale), "where_ge"))
    result = rewritten(source, *rules_of("thresholds"), move_thresholds, *rules_of("lower"), *rules_of("tidy"))
    assert "PRELU" not in op_names(result)
    assert_same_values(source, result)


@pytest.mark.parametrize("scale", [0.5, -2.0])
def test_a_layer_before_it_writes_bits(scale: float) -> None:
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 6, 6, 32)), sign_weights(RNG, 32, 3, 3, 32))
    x = model.sign(after_prelu(model, x, SLOPES, scale), "where_ge")
    source = model.finish(model.conv(x, sign_weights(RNG, 8, 3, 3, 32)))
    result = read_model(litebnn.convert_tflite(source))
    assert op_names(result) == ["LceQuantize", "LceBconv2d", "LceBconv2d"]
    assert_same_values(source, result)


@pytest.mark.parametrize("clamp", ["RELU", "RELU6", "RELU_N1_TO_1"])
@pytest.mark.parametrize("shift", [0.5, -0.5, -3.0])
def test_a_clamp_between_two_batch_norms_goes_where_it_holds_the_threshold(clamp: str, shift: float) -> None:
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 6, 6, 32)), sign_weights(RNG, 32, 3, 3, 32), np.full(32, 2.5))
    x = model.elementwise(clamp, model.elementwise("MUL", x, model.const(np.full(32, 0.25))))
    x = model.elementwise("ADD", x, model.const(np.full(32, shift)))
    source = model.finish(model.conv(model.sign(x), sign_weights(RNG, 8, 3, 3, 32)))
    low, high = {"RELU": (0, np.inf), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1)}[clamp]
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert (report.layers[0].output == "bits") == (low < -shift <= high)
    assert (clamp in " ".join(report.layers[0].reasons)) == (report.layers[0].output != "bits")
    assert_same_values(source, read_model(converted))


@pytest.mark.parametrize("slope", [-0.5, 0.0, -1.5])
def test_slopes_that_are_not_positive_stay(slope: float) -> None:
    model = FloatModel()
    slopes = np.where(np.arange(32) == 3, slope, SLOPES)
    built = model.model(model.packed(after_prelu(model, model.input(1, 4, 4, 32), slopes, 1.0)))
    assert "PRELU" in run_pass(move_thresholds, built)[1]


def test_slopes_that_add_dimensions_stay() -> None:
    model = FloatModel()
    x = model.op("PRELU", [model.input(32), model.const(SLOPES.reshape(1, 1, -1))], (1, 1, 32))
    source = model.finish(model.sign(model.elementwise("ADD", x, model.const(SHIFTS)), "where_ge"))
    result = rewritten(source, recognize_signs, move_thresholds)
    assert {"PRELU", "LceQuantize"} <= set(op_names(result))


@pytest.mark.parametrize("read", ["", "output", "RELU"])
def test_what_only_the_sign_has_read_is_gone(read: str) -> None:
    model = FloatModel()
    y = after_prelu(model, model.input(1, 4, 4, 32), SLOPES, 2.0)
    prelu = model.graph.ops[0].output
    outputs = [model.packed(y)]
    if read:
        outputs.append(prelu if read == "output" else model.elementwise(read, prelu))
    changed, names = run_pass(move_thresholds, model.model(*outputs))
    assert changed
    assert names == (["PRELU", *([read] if read == "RELU" else []), "THRESHOLD"] if read else ["THRESHOLD"]) or (
        read == "RELU" and names == ["PRELU", "THRESHOLD", "RELU"]
    )


def between_layers(kind: str, slope: float = 0.5) -> list[str]:
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 8, 8, 32)), sign_weights(RNG, 32, 3, 3, 32), np.full(32, 3.0))
    y: Tensor
    if kind == "LEAKY_RELU":
        y = model.op(kind, [x], x.dims, alpha=slope)
    elif kind in ("MINIMUM", "MAXIMUM"):
        y = model.elementwise(kind, x, model.const(slope))
    elif kind == "PRELU":
        y = model.op(kind, [x, model.const(np.full((1, 1, 32), slope))], x.dims)
    else:
        y = model.op(kind, [x], x.dims)
    built, _ = binarized(model, model.conv(model.sign(y), sign_weights(RNG, 8, 3, 3, 32)))
    return op_names(built)


@pytest.mark.parametrize("kind", ["TANH", "ELU", "RELU_N1_TO_1", "LEAKY_RELU", "PRELU"])
def test_what_keeps_signs_goes(kind: str) -> None:
    assert between_layers(kind) == ["LceQuantize", "LceBconv2d", "LceBconv2d"]


@pytest.mark.parametrize(("kind", "slope"), [("MINIMUM", 1.0), ("MINIMUM", 0.0), ("MAXIMUM", -1.0)])
def test_a_clamp_on_the_other_side_of_zero_goes(kind: str, slope: float) -> None:
    assert between_layers(kind, slope) == ["LceQuantize", "LceBconv2d", "LceBconv2d"]


@pytest.mark.parametrize(
    ("kind", "slope"),
    [("LEAKY_RELU", 0.0), ("PRELU", -0.5), ("HARD_SWISH", 0), ("LOGISTIC", 0), ("MAXIMUM", 0.0), ("MAXIMUM", 1.0)],
)
def test_what_does_not_stays(kind: str, slope: float) -> None:
    assert kind in between_layers(kind, slope)


@pytest.mark.parametrize("other", ["", "sign", "output", "TANH"])
def test_a_fused_clamp_to_one_goes_where_only_signs_read_it(other: str) -> None:
    model = FloatModel()
    x = model.elementwise("ADD", model.input(1, 4, 4, 32), model.input(1, 4, 4, 32), activation="relu1")
    outputs = [model.packed(x)]
    if other:
        outputs.append(
            {"sign": model.packed, "output": lambda x: x}.get(other, lambda x: model.elementwise("TANH", x))(x)
        )
    built = model.model(*outputs)
    before = op_names(built)
    split = other in ("", "sign")
    changed, names = run_pass(move_thresholds, built)
    assert (changed, sorted(names)) == ((True, names_split(before, other)) if split else (False, sorted(before)))


def names_split(before: list[str], other: str) -> list[str]:
    """Returns the names of the ops that are expected after one run of the rule. They are the ops in `before`, and the
    fused clamp as a separate op."""
    return sorted([*before, "RELU_N1_TO_1"])


def test_what_has_other_dimensions_or_is_read_as_levels_stays() -> None:
    model = FloatModel()
    narrow = model.op("TANH", [model.input(1, 4, 1, 32)], (1, 4, 4, 32))
    assert not run_pass(move_thresholds, model.model(model.packed(narrow)))[0]
    model = FloatModel()
    levels = model.op("TANH", [model.input(1, 4, 4, 32, type="INT8")], (1, 4, 4, 32), type="INT8")
    assert not run_pass(move_thresholds, model.model(model.packed(levels)))[0]


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("step", [1 / 16, 4.0])
def test_a_clamp_of_levels_goes_where_it_leaves_one_below_zero(step: float, fused: bool) -> None:
    model = Int8Model()
    x, other = (model.input8((step, -5), 1, 4, 4, 32) for _ in range(2))
    y = model.add8(x, other, (step, -5))
    if fused:
        model.graph.ops[-1].options.fused_activation_function = Activation.RELU_N1_TO_1
    else:
        y = model.as_(y, model.elementwise("RELU_N1_TO_1", y), 1)
    signs = model.sign8(y, "where", EXACT_GRID)
    weights = sign_weights(RNG, 8, 1, 1, 32, alpha=False)
    source = model.finish(model.conv8(signs, weights, np.zeros(8), (1, 0), same=False, activation="none"))
    converted = litebnn.convert_tflite(source)
    assert step > 1 or op_names(converted) == ["ADD", "LceQuantize", "LceBconv2d"]
    assert_same_values(source, read_model(converted))
