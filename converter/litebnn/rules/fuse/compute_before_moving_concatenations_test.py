import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litebnn.convert import convert_tflite
from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.rules.fuse.compute_before_moving import compute_before_moving
from tests.support.float_models import FloatModel, assert_same_values, dyadic, op_names, run_pass, sign_weights

RNG = np.random.default_rng(0)


def layer(model: FloatModel, x: Tensor, scale: float = 0.5, channels: int = 32) -> Tensor:
    """Makes a batch norm, a sign and a binary convolution."""
    x = model.elementwise("MUL", x, model.const(np.full(x.channels, scale)))
    x = model.sign(model.elementwise("ADD", x, model.const(dyadic(RNG, x.channels))))
    return model.conv(x, sign_weights(RNG, channels, 1, 1, x.channels))


def test_signs_are_packed_from_the_parts_and_the_concatenations_between_vanish() -> None:
    model = FloatModel()
    x = model.input(1, 5, 6, 64)
    for _ in range(3):
        x = model.concatenated(x, layer(model, x))
    converted = convert_tflite(model.finish(x))
    graph = read_model(converted).graphs[0]
    joined = [op for op in graph.ops if op.name == "CONCATENATION"]
    assert [(op.output.type, len(op.inputs)) for op in joined] == [("INT32", 2), ("INT32", 3), ("FLOAT32", 4)]
    assert op_names(converted).count("MUL") == 0


@pytest.mark.parametrize("reader", ["RELU", "output"])
def test_a_concatenation_that_others_read_is_packed_as_it_is(reader: str) -> None:
    model = FloatModel()
    x = model.concatenated(model.input(1, 5, 6, 64), model.input(1, 5, 6, 32))
    other = x if reader == "output" else model.elementwise("RELU", x)
    names = op_names(convert_tflite(model.finish(layer(model, x), other)))
    assert names.count("LceQuantize") == 1


def test_parts_that_end_within_a_word_are_packed_together() -> None:
    model = FloatModel()
    x = model.concatenated(model.input(1, 5, 6, 40), model.input(1, 5, 6, 32))
    names = op_names(convert_tflite(model.finish(layer(model, x))))
    assert names.count("LceQuantize") == 1


@pytest.mark.parametrize(("signs", "is_too_many"), [(16, False), (80, True)])
def test_signs_are_charged_for_each_part(signs: int, is_too_many: bool) -> None:
    """The converter charges for each new op, and refuses models that cost too much. Without this limit, a file of a few
    kilobytes could get a million ops."""
    model = FloatModel()
    joined = model.concatenated(*(model.input(1, 1, 1, 32) for _ in range(64)))
    outputs = []
    for _ in range(signs):
        outputs.append(model.packed(joined))
    built = model.model(*outputs)
    if is_too_many:
        with pytest.raises(ConversionError, match="far more is computed"):
            run_pass(compute_before_moving, built)
    else:
        assert run_pass(compute_before_moving, built)[1].count("LceQuantize") == 64 * signs


@settings(max_examples=20)
@given(
    st.lists(st.sampled_from([32, 64, 40]), min_size=1, max_size=4),
    st.lists(st.sampled_from([-2.0, 0.0, 0.5, 1.0]), min_size=4, max_size=4),
    st.sampled_from([0, 1]),
)
def test_values_stay(channels: list[int], scales: list[float], outputs: int) -> None:
    model = FloatModel()
    x = model.input(2, 4, 3, 32)
    between = []
    for count, scale in zip(channels, scales, strict=False):
        y = layer(model, x, scale, count)
        x = model.concatenated(x, y) if outputs or count != 64 else model.concatenated(y, x)
        between.append(x)
    source = model.finish(layer(model, x), *between[:outputs])
    assert_same_values(source, read_model(convert_tflite(source)))
