"""Graphs in which one thing or another is not as it should be: converted or refused with a reason, nothing else."""

import contextlib
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import NUMPY_TYPES, Buffer, Graph, Op, Tensor

SOURCES = sorted((Path(__file__).resolve().parents[1] / "golden").glob("*.float.tflite"))
pytestmark = [
    pytest.mark.filterwarnings("ignore:no binary layer"),
    pytest.mark.filterwarnings("ignore:experimental_default_int8_range"),
]


def _type(rng: random.Random, graph: Graph, op: Op, tensor: Tensor) -> None:
    tensor.type = rng.choice([*NUMPY_TYPES, "STRING", "INT4", "RESOURCE"])


def _size(rng: random.Random, graph: Graph, op: Op, tensor: Tensor) -> None:
    sizes = [0, 1, 3, 32, 64, 2**31 - 1, -1]
    tensor.shape = tuple(rng.choice(sizes) if rng.random() < 0.4 else size for size in tensor.shape)


def _rank(rng: random.Random, graph: Graph, op: Op, tensor: Tensor) -> None:
    shape = tensor.shape
    tensor.shape = rng.choice([shape[1:], (*shape, 1), (), (1, *shape), shape[::-1], (int(np.prod(shape)),)])


def _unknown(rng: random.Random, graph: Graph, op: Op, tensor: Tensor) -> None:
    tensor.shape_signature = tuple(rng.choice([-1, size]) for size in tensor.shape) or None


def _arity(rng: random.Random, graph: Graph, op: Op, tensor: Tensor) -> None:
    if rng.random() < 0.5 and op.inputs:
        op.inputs.pop(rng.randrange(len(op.inputs)))
    else:
        op.inputs.append(tensor)


def _input(rng: random.Random, graph: Graph, op: Op, tensor: Tensor) -> None:
    tensors = [t for other in graph.ops for t in (*other.inputs, *other.outputs)]
    if op.inputs:
        op.inputs[rng.randrange(len(op.inputs))] = rng.choice([*tensors, None])


def _option(rng: random.Random, graph: Graph, op: Op, tensor: Tensor) -> None:
    numbers = [key for key, value in vars(op.options).items() if type(value) is int]
    if numbers:
        setattr(op.options, rng.choice(numbers), rng.choice([0, 1, 2, 3, 7, -1, 100]))


def _value(rng: random.Random, graph: Graph, op: Op, tensor: Tensor) -> None:
    if tensor.is_constant:
        data = np.array(tensor.buffer.data)
        data[rng.randrange(data.size)] = rng.randrange(256)
        tensor.buffer = Buffer(data if rng.random() < 0.8 else None)


def _kind(rng: random.Random, graph: Graph, op: Op, tensor: Tensor) -> None:
    other = rng.choice(graph.ops)
    op.code = other.code
    op.options = other.options if rng.random() < 0.7 else op.options


DAMAGES: list[Callable[[random.Random, Graph, Op, Tensor], None]] = [
    _type, _size, _rank, _unknown, _arity, _input, _option, _value, _kind,
]  # fmt: skip


@cache
def _source(path: Path) -> bytes:
    return path.read_bytes()


def _convert_damaged(seed: int) -> None:
    rng = random.Random(seed)
    model = read_model(_source(rng.choice(SOURCES)))
    graph = rng.choice(model.graphs)
    for _ in range(rng.choice([1, 1, 2, 3, 5])):
        op = rng.choice(graph.ops)
        tensor = rng.choice([t for t in (*op.inputs, *op.outputs) if t is not None])
        rng.choice(DAMAGES)(rng, graph, op, tensor)
    options = {"experimental_default_int8_range": (-3, 3)} if rng.random() < 0.3 else {}
    with contextlib.suppress(litebnn.ConversionError):
        litebnn.convert_tflite(write_model(model), **options)


@pytest.mark.parametrize("start", range(0, 400, 100))
def test_a_damaged_graph_is_converted_or_refused(start: int) -> None:
    for seed in range(start, start + 100):
        _convert_damaged(seed)


@pytest.mark.long
@pytest.mark.parametrize("start", range(1000, 21000, 1000))
def test_many_damaged_graphs_are_converted_or_refused(start: int) -> None:
    for seed in range(start, start + 1000):
        _convert_damaged(seed)
