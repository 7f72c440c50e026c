import numpy as np
import pytest

from litebnn.graph import Graph
from litebnn.rules.build.notes import Notes
from litebnn.rules.canonical.fold_constants import fold_constants
from tests.support.float_models import FloatModel, binarized, op_names, run_pass

RNG = np.random.default_rng(0)


def test_a_kernel_whose_sign_is_left_as_ops_is_folded() -> None:
    model = FloatModel()
    latent = model.const(RNG.standard_normal((3, 3, 32, 8)))
    kernel = model.sign(latent)
    turned = model.op("TRANSPOSE", [kernel, model.const([3, 0, 1, 2], np.int32)], (8, 3, 3, 32))
    built, _ = binarized(model, model.conv(model.sign(model.input(1, 8, 8, 32)), turned))
    assert op_names(built) == ["LceQuantize", "LceBconv2d"]


def test_half_precision_weights_are_folded_for_binary_layers_only() -> None:
    model = FloatModel()
    x = model.input(1, 8, 8, 32)

    def kernel(values: object) -> object:
        half = model.const(values, np.float16)
        return model.op("DEQUANTIZE", [half], half.shape)

    binary = model.conv(model.sign(x), kernel(RNG.choice([-0.5, 0.5], (8, 3, 3, 32))))  # type: ignore[arg-type]
    other = model.conv(x, kernel(RNG.standard_normal((8, 3, 3, 32))))  # type: ignore[arg-type]
    built, _ = binarized(model, binary, other)
    assert sorted(op_names(built)) == ["CONV_2D", "DEQUANTIZE", "LceBconv2d", "LceQuantize"]


def test_a_value_that_is_read_twice_over_and_over_is_computed_once() -> None:
    model = FloatModel()
    kernel = model.const(RNG.choice([-1.0, 1.0], (8, 3, 3, 32)))
    for _ in range(30):
        kernel = model.elementwise("ADD", kernel, kernel)
    built, _ = binarized(model, model.conv(model.sign(model.input(1, 8, 8, 32)), kernel))
    assert op_names(built) == ["LceQuantize", "LceBconv2d"]
    assert built.graphs[0].ops[1].input(2).array.max() == 2.0**30


def test_a_constant_that_would_grow_stays_for_a_layer_that_is_not_binary() -> None:
    model = FloatModel()
    x = model.input(1, 8, 8, 32)
    wide = model.op("BROADCAST_TO", [model.const(0.5), model.const([8, 8, 32], np.int32)], (8, 8, 32))
    narrow = model.elementwise("NEG", model.const(np.ones(32)))
    built = model.model(model.elementwise("MUL", model.elementwise("ADD", x, narrow), wide))
    assert run_pass(fold_constants, built)[0]
    assert op_names(built) == ["BROADCAST_TO", "NEG", "ADD", "MUL"]
    np.testing.assert_array_equal(built.graphs[0].ops[2].input(1).array, -np.ones(32))


def test_a_constant_that_does_not_grow_is_folded_for_any_layer() -> None:
    model = FloatModel()
    weights = RNG.standard_normal((8, 3, 3, 32))
    built = model.model(model.conv(model.input(1, 8, 8, 32), model.elementwise("NEG", model.const(weights))))
    assert run_pass(fold_constants, built) == (True, ["NEG", "CONV_2D"])
    np.testing.assert_array_equal(built.graphs[0].ops[-1].input(1).array, -weights.astype(np.float32))


def test_bytes_before_are_those_that_weights_are_computed_from() -> None:
    model = FloatModel()
    kernel = model.elementwise("NEG", model.const(RNG.choice([-1.0, 1.0], (8, 3, 3, 32))))
    notes = Notes(model.model(model.conv(model.sign(model.input(1, 8, 8, 32)), kernel)))
    assert notes.layers[0].bytes_before == 4 * (8 * 3 * 3 * 32 + 8)


def test_a_half_precision_number_in_a_sign_is_folded_though_it_grows() -> None:
    model = FloatModel()
    x = model.input(1, 8, 8, 32)
    tenth = model.const(0.1, np.float16)
    shifted = model.elementwise("ADD", model.elementwise("SIGN", x), model.op("DEQUANTIZE", [tenth], ()))
    weights = model.const(RNG.standard_normal((8, 3, 3, 32)), np.float16)
    kernel = model.op("DEQUANTIZE", [weights], weights.shape)
    built = model.model(model.elementwise("SIGN", shifted), model.conv(x, kernel))
    assert run_pass(fold_constants, built)[0]
    add = next(op for op in built.graphs[0].ops if op.name == "ADD")
    assert add.input(1).type == "FLOAT32"
    assert add.input(1).array == np.float32(np.float16(0.1))
    assert next(op for op in built.graphs[0].ops if op.name == "CONV_2D").input(1) is kernel


def test_weights_of_half_precision_are_folded_after_signs_that_are_moved() -> None:
    model = FloatModel()
    begin, size = (model.const(numbers, np.int32) for numbers in ([0, 2, 2, 0], [1, 4, 4, 32]))
    moved = model.op("SLICE", [model.sign(model.input(1, 8, 8, 32)), begin, size], (1, 4, 4, 32))
    weights = model.const(RNG.choice([-1.0, 1.0], (8, 3, 3, 32)), np.float16)
    built, _ = binarized(model, model.conv(moved, model.op("DEQUANTIZE", [weights], weights.shape)))
    assert "LceBconv2d" in op_names(built)


def test_a_long_chain_is_not_walked_for_each_of_its_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    def looks(length: int) -> int:
        model = FloatModel()
        x = model.input(1, 4)
        for _ in range(length):
            x = model.elementwise("NEG", x)
        built, found = model.model(x), []
        producer = Graph.producer
        monkeypatch.setattr(Graph, "producer", lambda graph, tensor: found.append(1) or producer(graph, tensor))
        assert not fold_constants(built.graphs[0], Notes(built))
        monkeypatch.undo()
        return len(found)

    assert looks(200) <= 2 * looks(100)
