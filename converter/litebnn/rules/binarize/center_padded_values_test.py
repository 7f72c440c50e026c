from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.rules.binarize.center_padded_values import center_padded_values
from tests.support.float_models import FloatModel, op_names, rewritten, sign_weights

RNG = np.random.default_rng(0)


def with_offset(model: FloatModel, x: Tensor, most: float, scale: float, offset: float) -> Tensor:
    """Appends the quantizer of LSQ+ with the levels 0 to `most`."""
    levels = model.elementwise("MUL", x, model.const(1 / scale))
    levels = model.elementwise("MINIMUM", model.elementwise("RELU", levels), model.const(most))
    levels = model.elementwise("MUL", model.elementwise("ROUND", levels), model.const(scale))
    return model.elementwise("ADD", levels, model.const(offset))


@pytest.mark.usefixtures("library")
@settings(deadline=None, max_examples=20)
@given(st.data())
def test_padded_values_with_an_offset_are_signs(data: st.DataObject) -> None:
    draw = data.draw
    model = FloatModel()
    x = model.input(1, draw(st.integers(4, 7)), draw(st.integers(4, 7)), 32)
    values = with_offset(model, x, draw(st.sampled_from([1, 2, 3])), 0.3, draw(st.sampled_from([-0.35, 0.1, 1])))
    moves = draw(st.sampled_from(["", "pooled", "transposed", "reshaped"]))
    if moves == "pooled":
        values = model.max_pool(values, 2, 1)
    elif moves == "transposed":
        values = model.transpose(values, 0, 2, 1, 3)
    elif moves == "reshaped":
        values = model.reshape(values, 1, x.dims[2], x.dims[1], 32)
    before = [draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) for _ in range(2)]
    values = model.pad(values, before) if draw(st.booleans()) else values
    options: dict[str, Any] = {"same": draw(st.booleans()), "stride": draw(st.sampled_from([(1, 1), (2, 1), (2, 2)]))}
    weights = sign_weights(RNG, 8, draw(st.integers(1, 3)), draw(st.integers(1, 3)), 32)
    y = model.conv(values, weights, RNG.normal(size=8), activation=draw(st.sampled_from(["none", "relu"])), **options)
    source = model.finish(y)
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert [layer.binary for layer in report.layers] == [True]
    sample = RNG.normal(size=x.shape).astype(np.float32)
    expected, actual = (litebnn.Interpreter(each).predict(sample) for each in (source, converted))
    np.testing.assert_allclose(actual, expected, atol=1e-4)


def test_what_the_middle_contributes_is_small_in_the_file() -> None:
    model = FloatModel()
    values = with_offset(model, model.input(1, 56, 56, 64), 1, 0.3, -0.1)
    converted = litebnn.convert_tflite(model.finish(model.conv(values, sign_weights(RNG, 64, 3, 3, 64), same=True)))
    names = op_names(converted)
    assert (names.count("GATHER"), names.count("LceBconv2d")) == (2, 1)
    constants = [t for op in read_model(converted).graphs[0].ops for t in op.inputs if t is not None and t.is_constant]
    assert max(t.buffer.data.nbytes for t in constants if t.buffer.data is not None) <= 64 * 9 * 64 // 8


@pytest.mark.parametrize("kind", ["valid", "an offset of no effect", "other weights", "unknown size", "huge", "joined"])
def test_other_layers_stay(kind: str) -> None:
    model = FloatModel()
    x = model.input(
        1, 1 << 30 if kind == "huge" else 6, 6, 32, signature=[1, -1, 6, 32] if kind == "unknown size" else None
    )
    values = with_offset(model, x, 1, 0.5, -0.25 if kind == "an offset of no effect" else 0.1)
    if kind == "joined":
        values = model.concatenated(values, values)
    weights = sign_weights(RNG, 8, 3, 3, values.channels)
    weights = RNG.normal(size=weights.shape) if kind == "other weights" else weights
    source = model.finish(model.conv(values, weights, same=kind != "valid"))
    assert op_names(rewritten(source, center_padded_values)) == op_names(source)
