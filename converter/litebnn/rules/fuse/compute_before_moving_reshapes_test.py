import tracemalloc

import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.rules.fuse.compute_before_moving import compute_before_moving
from tests.support.float_models import (
    FloatModel,
    assert_same_values,
    binarized,
    dyadic,
    op_names,
    run_pass,
    sign_weights,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("sign_first", [True, False])
def test_a_flatten_between_binary_layers_is_one_of_bits(sign_first: bool) -> None:
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 5, 5, 32)), sign_weights(RNG, 64, 3, 3, 32))
    x = model.reshape(model.sign(x), 1, 576) if sign_first else model.sign(model.reshape(x, 1, 576))
    x = model.dense(x, sign_weights(RNG, 10, 576), np.ones(10))
    x = model.elementwise("ADD", model.elementwise("MUL", x, model.const(np.full(10, 2))), model.const(np.ones(10)))
    built, _ = binarized(model, x)
    assert op_names(built) == ["LceQuantize", "LceBconv2d", "RESHAPE", "LceBconv2d", "RESHAPE"]
    bits = built.graphs[0].ops[2].output
    assert (bits.type, bits.dims) == ("INT32", (1, 1, 1, 18))


def test_a_flatten_of_channels_that_fill_no_words_happens_before_the_sign() -> None:
    model = FloatModel()
    x = model.reshape(model.sign(model.input(1, 3, 3, 40)), 1, 360)
    built, _ = binarized(model, model.dense(x, sign_weights(RNG, 10, 360)))
    assert op_names(built) == ["RESHAPE", "LceQuantize", "RESHAPE", "LceBconv2d", "RESHAPE"]


def bits_reshaped(model: FloatModel, bits: Tensor, *dims: int) -> Tensor:
    return model.op("RESHAPE", [bits, model.const(dims, np.int32)], dims, type="INT32")


def test_a_reshape_of_reshaped_bits_is_one() -> None:
    model = FloatModel()
    bits = model.packed(model.input(1, 4, 6, 64))
    built = model.model(bits_reshaped(model, bits_reshaped(model, bits, 1, 24, 2), 1, 48))
    changed, _ = run_pass(compute_before_moving, built)
    last = built.graphs[0].ops[-1]
    assert (changed, last.name, last.input(0), last.output.dims) == (True, "RESHAPE", bits, (1, 48))


def test_a_reshape_of_bits_to_the_dimensions_they_have_is_none() -> None:
    for is_output in (False, True):
        model = FloatModel()
        bits = model.packed(model.input(1, 4, 6, 64))
        same = bits_reshaped(model, bits, 1, 4, 6, 2)
        built = model.model(same if is_output else bits_reshaped(model, same, 1, 48))
        before = op_names(built)
        changed, names = run_pass(compute_before_moving, built)
        assert (changed, names) == ((False, before) if is_output else (True, ["LceQuantize", "RESHAPE"]))


def test_what_reshapes_floats_or_has_two_unknown_dimensions_is_not_merged() -> None:
    model = FloatModel()
    built = model.model(model.reshape(model.reshape(model.input(1, 4, 6, 64), 1, 24, 64), 1, 1536))
    assert run_pass(compute_before_moving, built) == (False, ["RESHAPE", "RESHAPE"])
    model = FloatModel()
    bits = model.packed(model.input(1, 4, 6, 64, signature=(-1, -1, 6, 64)))
    twice = bits_reshaped(model, bits_reshaped(model, bits, -1, 24, 2), -1, -1, 2)
    assert run_pass(compute_before_moving, model.model(twice)) == (False, ["LceQuantize", "RESHAPE", "RESHAPE"])


def test_all_signs_of_what_is_reshaped_are_packed_before_it() -> None:
    """The float tensor stays, because ops other than the sign read it."""
    model = FloatModel()
    flat = model.reshape(model.input(2, 3, 64), 6, 64)
    source = model.finish(model.packed(flat), model.packed(flat), model.elementwise("RELU", flat))
    result = read_model(source)
    changed, names = run_pass(compute_before_moving, result)
    assert changed
    assert sorted(names) == ["LceQuantize", "LceQuantize", "RELU", "RESHAPE", "RESHAPE", "RESHAPE"]
    assert [op.input(0).dims for op in result.ops() if op.name == "LceQuantize"] == [(2, 3, 64)] * 2
    assert_same_values(source, result)


@pytest.mark.parametrize(
    ("channels", "moves"), [((64, 64), True), ((40, 40), True), ((32, 96), True), ((48, 24), False)]
)
def test_signs_are_packed_before_a_reshape_that_keeps_their_words(channels: tuple[int, int], moves: bool) -> None:
    before, after = channels
    model = FloatModel()
    built = model.model(model.packed(model.reshape(model.input(6, before), 6 * before // after, after)))
    assert run_pass(compute_before_moving, built)[0] is moves


def layer_reshaped(model: FloatModel, *dims: int) -> tuple[Tensor, Tensor]:
    """Returns the output [1, 2, 2, 32] of a binary layer, and a reshaped copy of it."""
    layer = model.conv(model.sign(model.input(1, 2, 2, 32)), sign_weights(RNG, 32, 1, 1, 32, alpha=False))
    return layer, model.reshape(layer, *dims)


@pytest.mark.parametrize("step", ["MUL", "SUB", "SUB from", "RELU", "NEG"])
def test_what_a_layer_can_fuse_is_fused_before_a_reshape(step: str) -> None:
    model = FloatModel()
    _, x = layer_reshaped(model, 1, 4, 32)
    amounts = model.const(dyadic(RNG, 32))
    operands = {"MUL": (x, amounts), "SUB": (x, amounts), "SUB from": (amounts, x)}.get(step, (x,))
    source = model.finish(model.elementwise(step.split()[0], *operands))
    converted = litebnn.convert_tflite(source)
    assert op_names(converted) == ["LceQuantize", "LceBconv2d", "RESHAPE"]
    assert_same_values(source, read_model(converted))


@pytest.mark.parametrize("case", ["channels", "broadcast", "layer read", "reshape read", "not fused", "two tensors"])
def test_what_a_layer_cannot_fuse_stays_after_the_reshape(case: str) -> None:
    model = FloatModel()
    layer, x = layer_reshaped(model, *((1, 128) if case == "channels" else (1, 4, 32)))
    operand = {"broadcast": (4, 1, 32), "two tensors": None}.get(case, (x.channels,))
    other = model.input(1, 4, 32) if operand is None else model.const(np.full(operand, 0.5))
    y = model.elementwise("TANH", x) if case == "not fused" else model.elementwise("MUL", x, other)
    read = {"layer read": [model.elementwise("TANH", layer)], "reshape read": [model.elementwise("TANH", x)]}
    names = op_names(litebnn.convert_tflite(model.finish(y, *read.get(case, []))))
    assert names.index("RESHAPE") < names.index("TANH" if case == "not fused" else "MUL")


def test_the_channels_that_a_file_claims_take_no_memory() -> None:
    model = FloatModel()
    x = model.reshape(model.input(1, 1 << 24), 1, 1, 1 << 24)
    built = model.model(model.elementwise("RELU", x))
    tracemalloc.start()
    assert run_pass(compute_before_moving, built) == (False, ["RESHAPE", "RELU"])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1 << 20
