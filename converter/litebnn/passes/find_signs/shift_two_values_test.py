from collections.abc import Callable

import numpy as np
import pytest

from litebnn.graph import Model, Tensor
from litebnn.passes import BINARY_PHASES, PHASES, run_phases
from litebnn.passes.find_signs.shift_two_values import shift_two_values
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.padding import constant_padding
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten, run_pass, sign_weights

Layer = Callable[[FloatModel, Tensor], Tensor]
WEIGHTS = sign_weights(np.random.default_rng(0), 8, 3, 3, 32)


def pad_values(model: Model) -> list[float]:
    paddings = [constant_padding(op) for op in model.graphs[0].ops if op.name == "PADV2"]
    return [padding.value for padding in paddings if padding is not None]


def test_weights_and_bias_make_up_for_the_values() -> None:
    model = FloatModel()
    x = model.two_values(model.input(1, 4, 4, 32), -1.0, 3.0)
    built = model.model(model.conv(x, WEIGHTS, np.arange(8)))
    assert run_pass(shift_two_values, built)[0]
    layer = built.graphs[0].ops[-1]
    np.testing.assert_array_equal(layer.input(1).array, 2 * WEIGHTS)
    np.testing.assert_array_equal(layer.input(2).array, np.arange(8) + WEIGHTS.sum(axis=(1, 2, 3)))


def same(model: FloatModel, x: Tensor) -> Tensor:
    return model.conv(x, WEIGHTS, same=True)


def pooled(model: FloatModel, x: Tensor) -> Tensor:
    return model.conv(model.max_pool(x, 2, 2), WEIGHTS, same=True)


def padded(model: FloatModel, x: Tensor) -> Tensor:
    return model.conv(model.pad(x, [(1, 1), (1, 1)]), WEIGHTS)


def padded_with_one(model: FloatModel, x: Tensor) -> Tensor:
    return model.conv(model.pad(x, [(1, 1), (1, 1)], 1.0), WEIGHTS)


@pytest.mark.parametrize(("layer", "pad"), [(same, 1.0), (pooled, -1.0), (padded, 1.0), (padded_with_one, 1.0)])
def test_a_zero_is_a_sign_and_where_possible_plus_one(layer: Layer, pad: float) -> None:
    model = FloatModel()
    built = model.model(layer(model, model.two_values(model.input(1, 8, 8, 32))))
    assert run_pass(shift_two_values, built)[0]
    assert pad_values(built)[-1] == pad


@pytest.mark.parametrize("layer", [same, padded])
def test_values_that_are_padded_with_a_third_one_are_left_alone(layer: Layer) -> None:
    model = FloatModel()
    x = model.two_values(model.input(1, 8, 8, 32), 1.0, 3.0)
    built = model.model(layer(model, x))
    notes = Notes(built)
    run_phases(built, BINARY_PHASES, notes)
    assert "CONV_2D" in op_names(built)
    assert "takes 1 and 3 and is padded with 0, which is neither" in "; ".join(notes.layers[0].reasons)


def test_opposite_values_may_be_padded_with_zero() -> None:
    model = FloatModel()
    built = model.model(same(model, model.two_values(model.input(1, 8, 8, 32), 0.5, -0.5)))
    run_phases(built, BINARY_PHASES, Notes(built))
    assert "CONV_2D" not in op_names(built)


@pytest.mark.parametrize("scale", [0.25, -1.0, -3.0])
def test_a_scaled_sign_is_one_with_other_weights(scale: float) -> None:
    model = FloatModel()
    x = model.elementwise("MUL", model.sign(model.input(1, 8, 8, 32)), model.const(scale))
    built = model.model(same(model, x))
    run_phases(built, BINARY_PHASES, Notes(built))
    assert op_names(built) == ["LceQuantize", "LceBconv2d"]


def test_a_layer_of_other_weights_keeps_its_values() -> None:
    model = FloatModel()
    x = model.two_values(model.input(1, 8, 8, 32))
    changed, _ = run_pass(shift_two_values, model.model(model.conv(x, np.arange(8 * 32).reshape(8, 1, 1, 32))))
    assert not changed


def test_the_padding_of_an_unknown_size_is_named() -> None:
    model = FloatModel()
    x = model.two_values(model.input(1, 8, 8, 32, signature=(1, -1, -1, 32)))
    built = model.model(model.conv(x, WEIGHTS, same=True, stride=(2, 2)))
    notes = Notes(built)
    run_phases(built, BINARY_PHASES, notes)
    assert "depends on a size that is not known" in "; ".join(notes.layers[0].reasons)


@pytest.mark.usefixtures("library")
def test_values_on_the_long_way_round_to_a_dilation() -> None:
    model = FloatModel()
    x = model.space_to_batch(model.two_values(model.input(1, 8, 8, 32)), [2, 2], [(2, 2), (0, 4)])
    source = model.finish(model.batch_to_space(model.conv(x, WEIGHTS), [2, 2], [(0, 0), (1, 1)]))
    result = rewritten(source, *PHASES["find_signs"], *PHASES["find_signs"], *PHASES["binarize"])
    assert "CONV_2D" not in op_names(result)
    assert_same_values(source, result)


def test_a_maximum_of_negated_signs_is_left_alone() -> None:
    model = FloatModel()
    x = model.elementwise("MUL", model.sign(model.input(1, 8, 8, 32)), model.const(-1.0))
    built = model.model(model.conv(model.max_pool(x, 2, 2), WEIGHTS))
    notes = Notes(built)
    run_phases(built, BINARY_PHASES, notes)
    assert "CONV_2D" in op_names(built)
    assert "takes maxima against a sign" in "; ".join(notes.layers[0].reasons)
