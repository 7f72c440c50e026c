from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from litebnn.contract import Padding
from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model
from litebnn.graph import (
    FACTS,
    Graph,
    Op,
    OpCode,
    Tensor,
    constant,
)
from litebnn.safety import check_graph
from tests.support import lce_models
from tests.support.float_models import FloatModel

KERNEL = np.ones((8, 3, 3, 32), np.float32)


def sound() -> FloatModel:
    """A valid model with a padded convolution of a sign."""
    model = FloatModel()
    x = model.pad(model.sign(model.input(1, 6, 6, 32), "where_not"), [(1, 1), (1, 1)], 1.0)
    model.conv(x, KERNEL)
    return model


def op_of(model: FloatModel, name: str) -> Op:
    return next(op for op in model.graph.ops if op.name == name)


def set_option(name: str, key: str, value: int) -> Callable[[FloatModel], None]:
    return lambda model: setattr(op_of(model, name).options, key, value)


def set_input(name: str, index: int, value: Any) -> Callable[[FloatModel], None]:
    return lambda model: model.graph.set_input(op_of(model, name), index, constant("c", np.asarray(value)))


def test_a_sound_model_passes() -> None:
    check_graph(sound().graph)


def test_what_joins_may_have_any_number_of_inputs() -> None:
    model = FloatModel()
    model.op("CONCATENATION", [model.input(1, 4)] * 1000, (1, 4000), axis=1)
    check_graph(model.graph)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda m: op_of(m, "PADV2").inputs.pop(), r"op 3 \(PADV2\): 2 inputs, expected 3"),
        (lambda m: op_of(m, "CONV_2D").outputs.append(Tensor("t", "FLOAT32", ())), "2 outputs, expected 1"),
        (set_option("CONV_2D", "stride_w", 0), "stride_w is 0, expected at least 1"),
        (set_option("CONV_2D", "padding", 7), r"padding is 7, expected 0 \(SAME\) or 1 \(VALID\)"),
        (set_option("CONV_2D", "table", 0), "options are missing, expected Conv2DOptions"),
        (set_input("CONV_2D", 1, np.float32(1)), '"c" has 0 dimensions, expected 4'),
        (set_input("PADV2", 1, np.zeros((4, 2), np.float32)), 'input "c" is FLOAT32'),
        (set_input("LOGICAL_NOT", 0, np.int8(1)), 'input "c" is INT8'),
        (set_input("GREATER_EQUAL", 1, np.bool_(1)), 'input "c" is BOOL'),
        (lambda m: setattr(op_of(m, "CONV_2D").output, "buffer", constant("c", KERNEL).buffer), "a constant"),
    ],
)
def test_an_op_that_is_not_as_its_kind_is_named(damage: Callable[[FloatModel], None], reason: str) -> None:
    model = sound()
    damage(model)
    with pytest.raises(ConversionError, match=reason):
        check_graph(model.graph)


def test_a_tensor_whose_dimensions_nobody_knows_passes() -> None:
    model = FloatModel()
    model.conv(model.input(1, 6, 6, 32), KERNEL)
    model.graph.inputs[0].shape = ()
    check_graph(model.graph)


def test_ops_of_which_nothing_is_known_pass() -> None:
    model = FloatModel()
    model.graph.insert(Op(OpCode("CUSTOM", "Mine"), [None], []))
    model.graph.insert(Op(OpCode("FFT"), [], []))
    check_graph(model.graph)


@pytest.mark.parametrize("name", [name for name, known in FACTS.items() if known.most])
def test_facts_agree_with_each_other(name: str) -> None:
    known = FACTS[name]
    assert 1 <= known.least <= known.most
    assert max(len(known.kinds), len(known.ranks)) <= known.most
    assert known.options or not (known.needs_options or known.defaults)
    assert not known.layer or (known.constants and known.data not in known.constants)
    assert known.int8 is None or known.int8.weights_axis is None or known.layer
    assert not known.moves or (known.int8 is not None and known.int8.same_parameters)
    assert not known.reshapes or known.moves
    assert known.defaults.get("padding", 0) in tuple(Padding)


def test_a_concatenation_says_along_which_axis() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    model.op("CONCATENATION", [x, x], (1, 8), axis=1)
    check_graph(model.graph)
    op_of(model, "CONCATENATION").options.table = ""
    with pytest.raises(ConversionError, match="options are missing, expected ConcatenationOptions"):
        check_graph(model.graph)


def test_an_input_of_the_graph_is_no_constant() -> None:
    model = sound()
    x = model.graph.inputs[0]
    x.name, x.buffer = "x", constant("c", np.ones(x.shape, np.float32)).buffer
    with pytest.raises(ConversionError, match='"x", an input of the graph, is a constant'):
        check_graph(model.graph)


def test_strings_come_from_somewhere() -> None:
    """If a tensor of strings has no data, runtimes read its strings out of bounds."""
    words, result = Tensor("words", "STRING", (2,)), Tensor("same", "BOOL", (2,))
    op = Op(OpCode("EQUAL"), [words, words], [result])
    check_graph(Graph("main", [words, result], [words], [result], [op]))
    with pytest.raises(ConversionError, match='reads "words", strings that are nowhere'):
        check_graph(Graph("main", [words, result], [], [result], [op]))


@pytest.mark.parametrize("name", ["LqceBsign", "LqceBconv2d8", "LqceBconv2d64", "LceBsign", "LceBconv2d"])
def test_an_op_of_an_outdated_converter_is_named(name: str) -> None:
    """The converters of 2020 wrote the op LceBconv2d too, with other options."""
    graph = lce_models.Graph()
    x, y = graph.tensor((1, 4, 4, 64), "float32"), graph.tensor((1, 4, 4, 64), "float32")
    graph.custom(name, [x], [y], {"padding": "SAME", "strides": [1, 2, 2, 1], "dilations": [1, 1, 1, 1]})
    with pytest.raises(ConversionError, match=rf"^op 0 \({name}\): of a converter before Larq Compute Engine 0.4, "):
        read_model(graph.build([x], [y]))


@pytest.mark.parametrize("name", ["LceBsignal", "MyLqceBsign", "LceQuantize", "Unknown"])
def test_other_custom_ops_are_not_called_outdated(name: str) -> None:
    x, y = Tensor("x", "FLOAT32", (1, 4)), Tensor("y", "FLOAT32", (1, 4))
    check_graph(Graph("main", [x, y], [x], [y], [Op(OpCode("CUSTOM", name), [x], [y])]))
