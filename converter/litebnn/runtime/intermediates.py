"""Looking at tensors inside a model, which runtimes only show where they are outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from litebnn.errors import ConversionError
from litebnn.flatbuffer import write_model
from litebnn.graph import Array, Graph, Model, Tensor
from litebnn.runtime.interpreter import Interpreter


def with_outputs(model: Model, tensors: list[Tensor]) -> bytes:
    """The file of `model` with `tensors` for the outputs of its first subgraph, and without signatures."""
    first, *others = model.graphs
    shown = Graph(first.name, first.tensors, first.inputs, list(tensors), first.ops, first.carried)
    return write_model(replace(model, graphs=[shown, *others], signatures=None))


def with_given(model: Model, values: Mapping[Tensor, Array], outputs: list[Tensor]) -> bytes:
    """The file of `model`, which this changes, whose ops read further inputs in place of tensors of its first subgraph.

    Args:
        values: for each tensor an input of this shape is added, in that order: rows of an unknown batch are more than
            one. What computes these tensors is left.
        outputs: of the first subgraph.
    """
    graph = model.graphs[0]
    for tensor, array in values.items():
        given = Tensor(f"{tensor.name}/given", tensor.type, array.shape)
        graph.redirect(tensor, given)
        graph.tensors.append(given)  # for nobody may read it
        graph.inputs.append(given)
    return with_outputs(model, outputs)


def interpreter_for(purpose: str, model: bytes) -> Interpreter:
    """An interpreter of the installed runtime.

    Raises:
        ConversionError: the runtime or the op library is missing, without which there is no `purpose`, or the runtime
            refuses the model.
    """
    try:
        return Interpreter(model)
    except (ImportError, OSError) as error:
        raise ConversionError(f"{purpose} needs a runtime and litebnn's library: {error}") from None
    except ValueError as error:
        raise ConversionError(f"{purpose} cannot run the model: {error}") from error
