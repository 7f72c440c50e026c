import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.rules.binarize.binarize_layers import binarize_layers
from litebnn.rules.canonical.remove_dead_ops import remove_dead_ops
from litebnn.rules.thresholds.recognize_signs import recognize_signs
from litebnn.rules.thresholds.work_on_bits import work_on_bits
from tests.support.float_models import (
    FloatModel,
    assert_same_values,
    binarized,
    dyadic,
    op_names,
    rewritten,
    sign_weights,
)

RNG = np.random.default_rng(0)
TO_CHANNELS_LAST, TO_CHANNELS_FIRST = [0, 2, 3, 1], [0, 3, 1, 2]


def reshaped(model: FloatModel, x: Tensor, kind: str) -> Tensor:
    if kind == "SQUEEZE":
        return model.op(kind, [x], (x.dims[0], *x.dims[2:]), squeeze_dims=np.array([1], np.int32))
    if kind == "EXPAND_DIMS":
        return model.op(kind, [x, model.const(0, np.int32)], (1, *x.dims))
    return model.reshape(x, 1, int(np.prod(x.dims)))


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
    result = rewritten(source, recognize_signs, work_on_bits, remove_dead_ops)
    assert op_names(result)[-len(names) :] == names
    assert_same_values(source, result)


def test_bits_that_are_computed_from_bits_are_packed_anew() -> None:
    model = FloatModel()
    x = reshaped(model, model.max_pool(model.sign(model.input(1, 4, 4, 40)), 2, 2), "RESHAPE")
    source = model.finish(model.dense(x, sign_weights(np.random.default_rng(0), 8, 160)))
    passes = (recognize_signs, work_on_bits, work_on_bits, binarize_layers, remove_dead_ops)
    result = rewritten(source, *passes)
    assert op_names(result)[-6:] == ["LceDequantize", "RESHAPE", "LceQuantize", "RESHAPE", "LceBconv2d", "RESHAPE"]
    assert_same_values(source, result)


def test_two_unknown_sizes_cannot_be_described() -> None:
    model = FloatModel()
    x = model.sign(model.input(1, 1, 3, 64, signature=(-1, -1, 3, 64)))
    source = model.finish(model.op("RESHAPE", [x, model.input(3, type="INT32")], (-1, -1, 64)))
    assert op_names(rewritten(source, recognize_signs, work_on_bits))[-1] == "RESHAPE"


@pytest.mark.parametrize("axis", [1, 3])
def test_an_axis_is_added_to_bits_whose_other_sizes_are_not_known(axis: int) -> None:
    """The reshape must not add an axis after the channels, because the channels would then no longer be last."""
    model = FloatModel()
    source = model.finish(model.expand(model.sign(model.input(1, 1, 40, signature=(-1, -1, 40))), axis))
    result = rewritten(source, recognize_signs, work_on_bits, remove_dead_ops)
    added = next(op for op in result.ops() if op.name == "EXPAND_DIMS")
    assert (added.input(0).type, added.output.type) == (("INT32", "INT32") if axis == 1 else ("FLOAT32", "FLOAT32"))


def turn(model: FloatModel, x: Tensor, order: list[int]) -> Tensor:
    shape = [x.dims[axis] for axis in order]
    return model.op("TRANSPOSE", [x, model.const(order, np.int32)], shape)


def channels_first() -> FloatModel:
    """Makes two binary convolutions as a channel-first framework exports them."""
    model = FloatModel()
    x = model.input(1, 64, 6, 5)
    for _ in range(2):
        y = model.conv(turn(model, model.sign(x), TO_CHANNELS_LAST), sign_weights(RNG, 64, 3, 3, 64), same=True)
        x = turn(model, y, TO_CHANNELS_FIRST)
    return model


def test_transposes_cancel_between_layers() -> None:
    model = channels_first()
    built, _ = binarized(model, model.graph.ops[-1].output)
    assert op_names(built) == ["TRANSPOSE", "LceQuantize", "LceBconv2d", "LceBconv2d", "TRANSPOSE"]


def test_values_stay_after_transposes() -> None:
    model = channels_first()
    source = model.finish(model.graph.ops[-1].output)
    x = dyadic(RNG, 1, 64, 6, 5)
    expected, actual = (litebnn.Interpreter(m).predict(x) for m in (source, litebnn.convert_tflite(source)))
    np.testing.assert_array_equal(actual, expected)


def moved(model: FloatModel, kind: str) -> Tensor:
    """Makes a tensor of signs that no sign op writes directly: signs that are broadcast or max-pooled."""
    if kind == "broadcast":
        row = model.elementwise("GREATER_EQUAL", model.input(1, 1, 4, 1), model.const(0), type="BOOL")
        return model.op("SELECT_V2", [row, model.const(np.ones((1, 5, 4, 40))), model.const(-1)], (1, 5, 4, 40))
    return model.max_pool(model.sign(model.input(1, 5, 4, 40)), 2, 2)


@pytest.mark.parametrize("kind", ["broadcast", "pooled"])
def test_bits_that_are_computed_from_bits_are_packed_anew_after_a_transpose(kind: str) -> None:
    model = FloatModel()
    x = turn(model, moved(model, kind), TO_CHANNELS_FIRST)
    source = model.finish(model.conv(x, sign_weights(RNG, 8, 1, 1, x.channels)))
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary
    assert_same_values(source, read_model(converted))
