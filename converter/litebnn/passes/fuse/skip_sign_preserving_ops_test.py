import numpy as np
import pytest

import litebnn
from litebnn.contract import Activation
from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.passes import BINARY_PHASES, run_phases
from litebnn.passes.fuse.skip_sign_preserving_ops import skip_sign_preserving_ops
from litebnn.rewriting.notes import Notes
from tests.support.float_models import FloatModel, assert_same_values, op_names, run_pass, sign_weights
from tests.support.quantized_models import EXACT_GRID, Int8Model

RNG = np.random.default_rng(0)


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
    built = model.model(model.conv(model.sign(y), sign_weights(RNG, 8, 3, 3, 32)))
    run_phases(built, BINARY_PHASES, Notes(built))
    return op_names(built)


@pytest.mark.parametrize("kind", ["TANH", "ELU", "RELU_N1_TO_1", "LEAKY_RELU", "PRELU"])
def test_what_keeps_signs_goes(kind: str) -> None:
    assert between_layers(kind) == ["LceQuantize", "LceBconv2d", "LceBconv2d"]


@pytest.mark.parametrize(("kind", "slope"), [("MINIMUM", 1.0), ("MAXIMUM", -1.0)])
def test_a_clamp_on_the_other_side_of_zero_goes(kind: str, slope: float) -> None:
    assert between_layers(kind, slope) == ["LceQuantize", "LceBconv2d", "LceBconv2d"]


@pytest.mark.parametrize(
    ("kind", "slope"),
    [("LEAKY_RELU", 0.0), ("PRELU", -0.5), ("HARD_SWISH", 0), ("LOGISTIC", 0), ("MINIMUM", 0.0), ("MAXIMUM", 1.0)],
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
    changed, names = run_pass(skip_sign_preserving_ops, built)
    assert (changed, names) == ((True, ["ADD", "RELU_N1_TO_1", *before[1:]]) if split else (False, before))


def test_what_has_other_dimensions_or_is_read_as_levels_stays() -> None:
    model = FloatModel()
    narrow = model.op("TANH", [model.input(1, 4, 1, 32)], (1, 4, 4, 32))
    assert not run_pass(skip_sign_preserving_ops, model.model(model.packed(narrow)))[0]
    model = FloatModel()
    levels = model.op("TANH", [model.input(1, 4, 4, 32, type="INT8")], (1, 4, 4, 32), type="INT8")
    assert not run_pass(skip_sign_preserving_ops, model.model(model.packed(levels)))[0]


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("step", [1 / 16, 4.0])
def test_a_clamp_of_levels_goes_where_it_leaves_one_below_zero(step: float, fused: bool, library: None) -> None:
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
