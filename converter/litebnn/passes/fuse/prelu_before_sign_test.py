import numpy as np
import pytest

from litebnn.graph import Tensor
from litebnn.passes import BINARY_PHASES, PHASES
from litebnn.passes.find_signs.recognize_signs import recognize_signs
from litebnn.passes.fuse.prelu_before_sign import prelu_before_sign
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten, run_pass, sign_weights

RNG = np.random.default_rng(0)
SLOPES = 2.0 ** -(np.arange(32) % 3)
SHIFTS = RNG.choice([-4.5, -1.5, -0.5, 0.5, 2.5], 32)


def behind_prelu(model: FloatModel, x: Tensor, slopes: np.ndarray, scale: float) -> Tensor:
    x = model.op("PRELU", [x, model.const(slopes.reshape(1, 1, -1))], x.dims)
    return model.elementwise("ADD", model.elementwise("MUL", x, model.const(scale)), model.const(SHIFTS))


@pytest.mark.parametrize("scale", [0.5, -2.0])
def test_only_the_threshold_moves(scale: float, library: None) -> None:
    model = FloatModel()
    source = model.finish(model.sign(behind_prelu(model, model.input(1, 4, 4, 32), SLOPES, scale), "where_ge"))
    result = rewritten(source, *PHASES["find_signs"], prelu_before_sign, *PHASES["tidy"])
    assert "PRELU" not in op_names(result)
    assert_same_values(source, result)


@pytest.mark.parametrize("scale", [0.5, -2.0])
def test_a_layer_in_front_writes_bits(scale: float, library: None) -> None:
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 6, 6, 32)), sign_weights(RNG, 32, 3, 3, 32))
    x = model.sign(behind_prelu(model, x, SLOPES, scale), "where_ge")
    source = model.finish(model.conv(x, sign_weights(RNG, 8, 3, 3, 32)))
    passes = [one for phase in BINARY_PHASES for one in PHASES[phase]] * 3
    result = rewritten(source, *passes, *PHASES["tidy"])
    assert op_names(result) == ["LceQuantize", "LceBconv2d", "LceBconv2d"]
    assert_same_values(source, result)


@pytest.mark.parametrize("slope", [-0.5, 0.0, -1.5])
def test_slopes_that_are_not_positive_stay(slope: float) -> None:
    model = FloatModel()
    slopes = np.where(np.arange(32) == 3, slope, SLOPES)
    built = model.model(model.packed(behind_prelu(model, model.input(1, 4, 4, 32), slopes, 1.0)))
    assert not run_pass(prelu_before_sign, built)[0]


def test_slopes_that_add_dimensions_stay() -> None:
    model = FloatModel()
    x = model.op("PRELU", [model.input(32), model.const(SLOPES.reshape(1, 1, -1))], (1, 1, 32))
    source = model.finish(model.sign(model.elementwise("ADD", x, model.const(SHIFTS)), "where_ge"))
    result = rewritten(source, recognize_signs, prelu_before_sign)
    assert {"PRELU", "LceQuantize"} <= set(op_names(result))


@pytest.mark.parametrize("read", ["", "output", "RELU"])
def test_what_only_the_sign_has_read_is_gone(read: str) -> None:
    model = FloatModel()
    y = behind_prelu(model, model.input(1, 4, 4, 32), SLOPES, 2.0)
    prelu = model.graph.ops[0].output
    outputs = [model.packed(y)]
    if read:
        outputs.append(prelu if read == "output" else model.elementwise(read, prelu))
    built = model.model(*outputs)
    before = op_names(built)
    expected = (False, before) if read else (True, ["MUL", "ADD", "LceQuantize"])
    assert run_pass(prelu_before_sign, built) == expected
