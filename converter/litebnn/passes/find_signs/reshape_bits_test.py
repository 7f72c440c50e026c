import numpy as np
import pytest

from litebnn.graph import Tensor
from litebnn.passes.binarize.binarize_dense import binarize_dense
from litebnn.passes.find_signs.pool_bits import pool_bits
from litebnn.passes.find_signs.recognize_signs import recognize_signs
from litebnn.passes.find_signs.reshape_bits import reshape_bits
from litebnn.passes.tidy.remove_dead_ops import remove_dead_ops
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten, sign_weights


def reshaped(model: FloatModel, x: Tensor, kind: str) -> Tensor:
    if kind == "SQUEEZE":
        return model.op(kind, [x], (x.dims[0], *x.dims[2:]), squeeze_dims=np.array([1], np.int32))
    if kind == "EXPAND_DIMS":
        return model.op(kind, [x, model.const(0, np.int32)], (1, *x.dims))
    return model.reshape(x, 1, int(np.prod(x.dims)))


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("kind", "channels", "names"),
    [
        ("RESHAPE", 64, ["LceQuantize", "RESHAPE", "LceDequantize"]),
        ("SQUEEZE", 40, ["LceQuantize", "RESHAPE", "LceDequantize"]),
        ("EXPAND_DIMS", 40, ["LceQuantize", "RESHAPE", "LceDequantize"]),
        ("RESHAPE", 40, ["RESHAPE", "LceQuantize", "LceDequantize"]),
    ],
)
def test_words_are_reshaped_where_they_fit_else_the_values(kind: str, channels: int, names: list[str]) -> None:
    model = FloatModel()
    source = model.finish(reshaped(model, model.sign(model.input(1, 1, 3, channels)), kind))
    result = rewritten(source, recognize_signs, reshape_bits, remove_dead_ops)
    assert op_names(result)[-len(names) :] == names
    assert_same_values(source, result)


@pytest.mark.usefixtures("library")
def test_bits_that_are_computed_from_bits_are_packed_anew() -> None:
    model = FloatModel()
    x = reshaped(model, model.max_pool(model.sign(model.input(1, 4, 4, 40)), 2, 2), "RESHAPE")
    source = model.finish(model.dense(x, sign_weights(np.random.default_rng(0), 8, 160)))
    passes = (recognize_signs, pool_bits, reshape_bits, binarize_dense, remove_dead_ops)
    result = rewritten(source, *passes)
    assert op_names(result)[-6:] == ["LceDequantize", "RESHAPE", "LceQuantize", "RESHAPE", "LceBconv2d", "RESHAPE"]
    assert_same_values(source, result)


def test_two_unknown_sizes_cannot_be_described() -> None:
    model = FloatModel()
    x = model.sign(model.input(1, 1, 3, 64, signature=(-1, -1, 3, 64)))
    source = model.finish(model.op("RESHAPE", [x, model.input(3, type="INT32")], (-1, -1, 64)))
    assert op_names(rewritten(source, recognize_signs, reshape_bits))[-1] == "RESHAPE"


@pytest.mark.parametrize("axis", [1, 3])
def test_an_axis_is_added_to_bits_whose_other_sizes_are_not_known(axis: int) -> None:
    """Behind the channels there is no place for one: they would be another axis then."""
    model = FloatModel()
    source = model.finish(model.expand(model.sign(model.input(1, 1, 40, signature=(-1, -1, 40))), axis))
    result = rewritten(source, recognize_signs, reshape_bits, remove_dead_ops)
    added = next(op for op in result.ops() if op.name == "EXPAND_DIMS")
    assert (added.input(0).type, added.output.type) == (("INT32", "INT32") if axis == 1 else ("FLOAT32", "FLOAT32"))
