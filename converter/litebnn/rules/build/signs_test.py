from collections.abc import Callable

import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.graph import Op, OpCode, Options, Tensor
from litebnn.rules.build.ops import custom_op
from litebnn.rules.build.signs import holds_signs
from tests.support.float_models import FloatModel, assert_same_values, sign_weights
from tests.support.quantized_models import USUAL_GRID, Int8Model

SHAPE = (1, 4, 4, 64)
Move = Callable[[FloatModel, Tensor], Tensor]


def indices(model: FloatModel, *values: int | list[int]) -> list[Tensor]:
    return [model.const(value, np.int32) for value in values]


def slice_off(model: FloatModel, x: Tensor) -> Tensor:
    begin, end, steps = ([0, 1, 0, 3], [1, 4, 4, 61], [1, 1, 2, 1])
    return model.op("STRIDED_SLICE", [x, *indices(model, begin, end, steps)], (1, 3, 2, 58))


def reflect(model: FloatModel, x: Tensor) -> Tensor:
    pads = model.const([(0, 0), (1, 1), (2, 0), (0, 0)], np.int32)
    return model.op("MIRROR_PAD", [x, pads], (1, 6, 6, 64), mode=0)


def shuffle_channels(model: FloatModel, x: Tensor) -> Tensor:
    """Shuffles channels between two groups, as in ShuffleNet."""
    groups = model.transpose(model.reshape(x, 1, 4, 4, 2, 32), 0, 1, 2, 4, 3)
    return model.reshape(groups, *SHAPE)


def resize(model: FloatModel, x: Tensor) -> Tensor:
    return model.op("RESIZE_NEAREST_NEIGHBOR", [x, *indices(model, [8, 8])], (1, 8, 8, 64))


def to_space(model: FloatModel, x: Tensor) -> Tensor:
    return model.op("DEPTH_TO_SPACE", [x], (1, 8, 8, 16), block_size=2)


MOVES: list[Move] = [slice_off, reflect, shuffle_channels, resize, to_space]


def join(model: FloatModel, x: Tensor) -> Tensor:
    other = model.sign(model.elementwise("ADD", model.graph.inputs[0], model.const(1)), "where_gt")
    return model.op("CONCATENATION", [x, other], (1, 4, 4, 128), axis=3)


def split_and_multiply(model: FloatModel, x: Tensor) -> Tensor:
    """Multiplies two halves of a tensor of signs. In bits, such a product is an XNOR."""
    halves = [Tensor(name, "FLOAT32", (1, 4, 4, 32)) for name in ("left", "right")]
    model.graph.insert(Op(OpCode("SPLIT"), [*indices(model, 3), x], halves, Options("SplitOptions", num_splits=2)))
    return model.elementwise("MUL", *halves)


def pad_with_ones(model: FloatModel, x: Tensor) -> Tensor:
    return model.pad(reflect(model, x), [(1, 0), (0, 1)], -1.0)


@pytest.mark.parametrize("move", [*MOVES, join, split_and_multiply, pad_with_ones])
def test_a_layer_of_moved_signs_is_binary(move: Move) -> None:
    model = FloatModel()
    moved = move(model, model.sign(model.input(*SHAPE)))
    rng = np.random.default_rng(0)
    source = model.finish(model.conv(moved, sign_weights(rng, 8, 3, 2, moved.channels)))
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary, str(report)
    assert_same_values(source, read_model(converted))


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize("channels", [40, 64])
def test_signs_that_are_padded_and_shuffled_come_to_an_end(channels: int, read: bool) -> None:
    """Signs of 40 channels take two words, and 24 bits of the second word are unused. Padding with -1 would need two
    different words, so the converter pads the signs as floats."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    padded = model.pad(model.sign(model.input(1, 3, 3, channels)), [(1, 0), (0, 1)], -1.0)
    groups = model.transpose(model.reshape(padded, 1, 4, 4, 2, channels // 2), 0, 1, 2, 4, 3)
    readers = [model.reshape(groups, 1, 4, 4, channels), *[padded] * read]
    source = model.finish(*(model.conv(x, sign_weights(rng, 8, 3, 2, channels)) for x in readers))
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert all(layer.binary for layer in report.layers), str(report)
    assert_same_values(source, read_model(converted))


@pytest.mark.parametrize("move", MOVES)
def test_a_layer_of_moved_levels_is_binary(move: Move) -> None:
    model = Int8Model()
    x = model.sign8(model.input8((1 / 16, 3), *SHAPE), "where", USUAL_GRID)
    moved = move(model, x)
    for op in model.graph.ops[2:]:
        op.code = OpCode(op.name, "", 1 if op.name == "RESHAPE" else 2)
        op.output.type, op.output.quantization = x.type, x.quantization
    rng = np.random.default_rng(0)
    weights = sign_weights(rng, 8, 3, 2, moved.channels)
    source = model.finish(model.conv8(moved, weights, np.zeros(8), (0.5, 3), same=False, activation="none"))
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary, str(report)
    assert_same_values(source, read_model(converted))


def test_what_takes_other_numbers_holds_no_signs() -> None:
    model = FloatModel()
    x = Tensor("x", "FLOAT32", SHAPE)
    model.graph.insert(custom_op("LceDequantize", [model.input(1, 4, 4, 2, type="INT32")], x))
    assert holds_signs(model.graph, model.elementwise("MUL", x, model.const(-1)))
    assert holds_signs(model.graph, model.pad(x, [(0, 0), (0, 0)]))
    for other in (
        model.elementwise("ADD", x, x),
        model.elementwise("MUL", x, model.const(2)),
        model.elementwise("MUL", x, x, activation="relu"),
        model.pad(x, [(0, 0), (0, 1)]),
        model.const(1),
    ):
        assert not holds_signs(model.graph, other)
