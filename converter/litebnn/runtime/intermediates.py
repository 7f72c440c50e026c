"""Reads tensors inside a model. Runtimes return only outputs, so these tensors are made outputs first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from litebnn.errors import ConversionError
from litebnn.flatbuffer import write_model
from litebnn.graph import Array, Graph, Model, Tensor
from litebnn.runtime.interpreter import Interpreter


def with_outputs(model: Model, tensors: list[Tensor]) -> bytes:
    """The file of `model` with `tensors` as the outputs of its first subgraph, and without signatures."""
    first, *others = model.graphs
    shown = Graph(first.name, first.tensors, first.inputs, list(tensors), first.ops, first.carried)
    return write_model(replace(model, graphs=[shown, *others], signatures=None))


def with_given(model: Model, values: Mapping[Tensor, Array], outputs: list[Tensor]) -> bytes:
    """The file of a model in which new inputs replace tensors of the first subgraph for all their consumers. `model` is
    changed.

    Args:
        values: the tensors to replace, with the values that they get. For each tensor, an input with the value's shape
            is added, in this order. The producers of these tensors stay in the graph.
        outputs: the new outputs of the first subgraph.
    """
    graph = model.graphs[0]
    for tensor, array in values.items():
        given = Tensor(f"{tensor.name}/given", tensor.type, array.shape, shape_signature=tensor.shape_signature)
        graph.redirect(tensor, given)
        graph.tensors.append(given)  # added explicitly, because no op may read it
        graph.inputs.append(given)
    return with_outputs(model, outputs)


def interpreter_for(purpose: str, model: bytes) -> Interpreter:
    """Makes an interpreter of the installed runtime.

    Raises:
        ConversionError: the runtime or the op library is missing, or the runtime refuses the model; the message names
            `purpose`.
    """
    try:
        return Interpreter(model)
    except (ImportError, OSError) as error:
        raise ConversionError(f"{purpose} needs a runtime and litebnn's library: {error}") from None
    except ValueError as error:
        raise ConversionError(f"{purpose} cannot run the model: {error}") from error
