import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.rules.build.bconv import bconv_options
from litebnn.rules.canonical.remove_dead_ops import remove_dead_ops
from litebnn.rules.larq.write_for_larq import write_for_larq
from litebnn.rules.phases import rules_of
from tests.support.float_models import (
    FloatModel,
    assert_same_values,
    dyadic,
    op_names,
    rewritten,
    run_pass,
    sign_weights,
)

RNG = np.random.default_rng(0)
BINARY = (*rules_of("thresholds"), *rules_of("binarize"), *rules_of("fuse"))


def two_layers(activation: str, *, same: bool = True, read_twice: bool = True) -> bytes:
    """Makes two layers with a batch norm and a sign between them. If `read_twice` is true, another op reads the batch
    norm too, so the first layer cannot write bits.
    """
    model = FloatModel()
    signs = model.sign(model.input(1, 6, 6, 32))
    x = model.conv(signs, sign_weights(RNG, 32, 3, 3, 32, alpha=False), same=same, activation=activation)
    x = model.elementwise("MUL", x, model.const(dyadic(RNG, 32)))
    x = model.elementwise("ADD", x, model.const(dyadic(RNG, 32)))
    others = [model.elementwise("NEG", x)] if read_twice else []
    return model.finish(model.conv(model.sign(x), sign_weights(RNG, 8, 1, 1, 32)), *others)


@pytest.mark.parametrize(("activation", "ops"), [("none", 0), ("relu", 3), ("relu6", 3), ("relu1", 3)])
def test_a_fused_activation_stands_after(activation: str, ops: int) -> None:
    source = two_layers(activation)
    before = rewritten(source, *BINARY, *BINARY)
    result = rewritten(source, *BINARY, *BINARY, write_for_larq)
    assert len(op_names(result)) == len(op_names(before)) + ops
    assert all(bconv_options(op).fused_activation_function == 0 for op in result.ops() if op.name == "LceBconv2d")
    assert_same_values(source, result)


@pytest.mark.parametrize("activation", ["none", "relu"])
def test_bits_are_packed_after(activation: str) -> None:
    source = two_layers(activation, read_twice=False)
    assert op_names(rewritten(source, *BINARY, *BINARY)) == ["LceQuantize", "LceBconv2d", "LceBconv2d"]
    result = rewritten(source, *BINARY, *BINARY, write_for_larq, remove_dead_ops)
    assert op_names(result) == ["LceQuantize", "LceBconv2d", "LceQuantize", "LceBconv2d"]
    assert_same_values(source, result)


def test_halves_of_a_level_next_to_a_number_add_up() -> None:
    """The first layer writes floats, because its input has an odd number of channels. The sign of these floats compares
    strictly (x > threshold), because of the layer's bias.
    """
    model = FloatModel()
    x = model.pad(model.sign(model.input(1, 6, 6, 3)), [(1, 1), (2, 0)])
    x = model.conv(x, sign_weights(RNG, 64, 5, 3, 3), dyadic(RNG, 64, largest=16, step=1 / 4))
    y = model.conv(model.sign(x, "where_gt"), sign_weights(RNG, 8, 1, 1, 64, alpha=False))
    source = model.finish(y)
    before = rewritten(source, *BINARY, *BINARY)
    assert bconv_options(before.graphs[0].ops[1]).explicit_padding is not None
    converted = litebnn.convert_tflite(source, larq_compatible=True)
    assert_same_values(source, read_model(converted))


def test_other_padding_stays_fused() -> None:
    source = two_layers("relu", same=False)
    before = rewritten(source, *BINARY, *BINARY)
    assert op_names(rewritten(source, *BINARY, *BINARY, write_for_larq)) == op_names(before)


@pytest.mark.filterwarnings("ignore:experimental_default_int8_range")
def test_int8_is_quantized_after() -> None:
    options = {"experimental_default_int8_range": (-3, 3), "larq_compatible": True}
    converted = litebnn.convert_tflite(two_layers("relu"), **options)
    layers = [op for op in read_model(converted).ops() if op.name == "LceBconv2d"]
    assert [op.output.type for op in layers if bconv_options(op).pads_zeros] == ["FLOAT32"]
    litebnn.Interpreter(converted).predict(np.ones((1, 6, 6, 32), np.float32))


def test_an_output_of_another_type_is_left_alone() -> None:
    """A damaged model may claim any type for a tensor."""
    model = rewritten(two_layers("none"), *BINARY, *BINARY)
    first = next(op for op in model.ops() if op.name == "LceBconv2d")
    first.output.type = "UINT64"
    changed, _ = run_pass(write_for_larq, model)
    assert not changed


@pytest.mark.parametrize("scale", [1, 2])
def test_only_whole_sums_are_halved_after_explicit_padding(scale: int) -> None:
    """An op with explicit padding by zeros becomes the sum of two ops, which pad with +1 and with -1. Each op computes
    half of the result. The halves add up exactly only for integers, so other multipliers and biases are applied after
    the sum.
    """
    model = FloatModel()
    x = model.pad(model.sign(model.input(1, 6, 6, 32)), [(1, 1), (2, 0)])
    x = model.conv(x, sign_weights(RNG, 8, 5, 3, 32, alpha=False))
    source = model.finish(x if scale == 1 else model.elementwise("MUL", x, model.const(np.full(8, scale))))
    before = rewritten(source, *BINARY, *BINARY)
    assert op_names(before) == ["LceQuantize", "LceBconv2d"]
    assert bconv_options(before.graphs[0].ops[1]).explicit_padding is not None
    after = op_names(rewritten(source, *BINARY, *BINARY, write_for_larq))
    assert after.count("LceBconv2d") == 2
    assert after.count("MUL") == scale - 1
