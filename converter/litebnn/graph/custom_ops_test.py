from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import litebnn
from litebnn.contract import decode_options, encode_options
from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model
from litebnn.graph import Graph, Op, check_custom_ops

GOLDEN = Path(__file__).parents[3] / "tests" / "golden"


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.lce.tflite")), ids=lambda file: file.name.split(".")[0])
def test_models_that_load_are_sound(file: Path) -> None:
    for graph in read_model(file.read_bytes()).graphs:
        check_custom_ops(graph)


def converted() -> Graph:
    return read_model(litebnn.convert_tflite(GOLDEN / "bmaxpool.float.tflite")).graphs[0]


def retyped(op: Op) -> None:
    op.output.type = "INT16"


def reshaped(op: Op) -> None:
    op.output.shape = (*op.output.shape[:-1], op.output.shape[-1] + 1)


@pytest.mark.parametrize("name", ["LceQuantize", "LceBconv2d", "LceBMaxPool2d"])
@pytest.mark.parametrize(("damage", "reason"), [(retyped, "is INT16, expected"), (reshaped, "has shape .*, expected")])
def test_what_the_library_refuses_is_named(name: str, damage: Callable[[Op], None], reason: str) -> None:
    graph = converted()
    damage(next(op for op in graph.ops if op.name == name))
    with pytest.raises(ConversionError, match=rf'op \d+ \({name}\): ".*" {reason}'):
        check_custom_ops(graph)


@pytest.mark.parametrize("index", [2, 3])
def test_constants_have_a_value_for_each_channel(index: int) -> None:
    graph = converted()
    op = next(op for op in graph.ops if op.name == "LceBconv2d" and op.optional(index) is not None)
    op.input(index).shape = (op.input(index).shape[0] + 1,)
    with pytest.raises(ConversionError, match="has shape"):
        check_custom_ops(graph)


@pytest.mark.parametrize(
    ("name", "option"),
    [("LceBconv2d", "stride_width"), ("LceBconv2d", "dilation_height_factor"), ("LceBMaxPool2d", "stride_height")],
)
def test_steps_of_nothing_are_named(name: str, option: str) -> None:
    graph = converted()
    op = next(op for op in graph.ops if op.name == name)
    op.custom_options = encode_options(replace(decode_options(name, op.custom_options), **{option: 0}))
    with pytest.raises(ConversionError, match=rf"{name}\): its strides .* or more"):
        check_custom_ops(graph)


def test_a_pool_of_another_rank_is_named() -> None:
    graph = converted()
    pool = next(op for op in graph.ops if op.name == "LceBMaxPool2d")
    pool.input(0).shape = (1, *pool.input(0).shape)
    with pytest.raises(ConversionError, match="LceBMaxPool2d.* has shape .*, expected 4 dimensions"):
        check_custom_ops(Graph("", graph.tensors, [pool.input(0)], pool.outputs, [pool]))
