import numpy as np
import pytest

from litebnn.contract import Padding
from litebnn.convert import convert_tflite
from litebnn.flatbuffer import read_model
from litebnn.passes import run_phases
from litebnn.passes.fuse.average_before_affine import average_before_affine
from litebnn.rewriting.notes import Notes
from tests.support.float_models import FloatModel, assert_same_values, dyadic, op_names, run_pass, sign_weights

RNG = np.random.default_rng(0)


def gated(
    reader: str = "", size: int = 8, padding: Padding = Padding.VALID, activation: int = 0, clamp: str = "none"
) -> bytes:
    """A batch norm that a binary layer takes signs of, and an average that its output is multiplied with."""
    model = FloatModel()
    x = model.elementwise("MUL", model.input(1, 8, 8, 32), model.const(RNG.choice([-0.5, 0.5, 2.0], 32)))
    x = model.elementwise("ADD", x, model.const(dyadic(RNG, 32)), activation=clamp)
    y = model.conv(model.sign(x), sign_weights(RNG, 32, 1, 1, 32))
    options = {"filter_height": size, "filter_width": size, "stride_h": 8, "stride_w": 8, "padding": padding}
    gate = model.op("AVERAGE_POOL_2D", [x], (1, 1, 1, 32), fused_activation_function=activation, **options)
    outputs = [x] if reader == "output" else [model.elementwise("RELU", x)] if reader else []
    return model.finish(model.elementwise("MUL", y, gate), *outputs)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(("size", "padding"), [(8, Padding.VALID), (4, Padding.SAME)])
def test_a_batch_norm_goes_behind_the_average(size: int, padding: Padding) -> None:
    source = gated(size=size, padding=padding)
    result = read_model(convert_tflite(source))
    [pool] = [op for op in result.ops() if op.name == "AVERAGE_POOL_2D"]
    assert pool.input(0) in result.graphs[0].inputs
    images = [op.name for op in result.ops() if op.output.dims == (1, 8, 8, 32)]
    assert images == ["ADD", "LceBconv2d", "MUL"]
    assert_same_values(source, result)


@pytest.mark.parametrize("reader", ["output", "RELU"])
def test_an_image_that_others_read_is_pooled_as_it_is(reader: str) -> None:
    names = op_names(convert_tflite(gated(reader)))
    assert names.index("AVERAGE_POOL_2D") > names.index("ADD")


def test_an_average_that_is_clamped_stays_in_front_of_nothing() -> None:
    names = op_names(convert_tflite(gated(activation=1)))
    assert names.index("AVERAGE_POOL_2D") > names.index("ADD")


@pytest.mark.parametrize(("clamp", "moves"), [("none", True), ("relu1", False)])
def test_the_average_of_what_is_clamped_stays_behind_the_clamp(clamp: str, moves: bool) -> None:
    model = read_model(gated(clamp=clamp))
    run_phases(model, ("find_signs", "binarize"), Notes(model))
    assert run_pass(average_before_affine, model)[0] is moves
