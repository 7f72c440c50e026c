"""Renames the tensors of an exported file after the model's layers that compute them.

An exporter merges ops, for example a convolution and its batch norm. The merged op's output gets a long name, which
joins the scopes (TensorFlow) or classes (PyTorch) of all ops in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Graph, Tensor, facts, unique_names


class Part(NamedTuple):
    """A part of a model, such as a layer or a module, that computes tensors."""

    name: str
    weights: int  # elements of its largest weight, 0 if it has none


def rename_tensors(tflite: bytes, name_of: Callable[[Graph, Tensor], str]) -> bytes:
    """Renames the tensors of a file. Names are unique in each subgraph, and the outputs of layers get the layers' names
    without a number.
    """
    model = read_model(tflite)
    for graph in model.graphs:
        named = [(name_of(graph, tensor), tensor) for tensor in graph.all_tensors()]
        named.sort(key=lambda pair: _rank(graph, pair[1]))
        # If several tensors have the same name, all but the first get a number. The first tensors are named before all
        # others, so that no name with a number is the name that another layer needs.
        first = dict(reversed(named))
        named.sort(key=lambda pair: first[pair[0]] is not pair[1])
        for (_, tensor), name in zip(named, unique_names(name for name, _ in named), strict=True):
            tensor.name = name
    return write_model(model)


def part_name(graph: Graph, tensor: Tensor, find_part: Callable[[str], Part | None]) -> str:
    """The name of the layer or module that computes a tensor of a litert-torch file; if none is found, the tensor's own
    name.

    In a litert-torch file, the names of all merged ops are joined with semicolons. The op with the largest weight is
    the layer; the others are batch norms and the like.

    Args:
        find_part: a function that returns the part to which one of the joined names belongs, or None.
    """
    op = graph.producer(tensor)
    weights = facts(op).constants[:1] if op is not None and facts(op).layer else ()
    sources = [tensor, *(op.input(index) for index in weights if op is not None)]
    found = (find_part(name) for source in sources for name in source.name.split(";"))
    parts = [part for part in found if part is not None]
    if not parts:
        return tensor.name
    return max(parts, key=lambda part: part.weights).name if weights else parts[0].name


def _rank(graph: Graph, tensor: Tensor) -> int:
    op = graph.producer(tensor)
    return 2 if op is None else 0 if facts(op).layer else 1
