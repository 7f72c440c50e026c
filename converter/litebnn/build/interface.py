"""The inputs and outputs of a graph, in the graph itself and in the signatures."""

from __future__ import annotations

from typing import Literal

from litebnn.graph import Graph, Model, Tensor


def replace_interface(model: Model, graph: Graph, side: Literal["inputs", "outputs"], old: Tensor, new: Tensor) -> None:
    """Replaces `old` by `new` among the graph's inputs or outputs and in the signatures; `new` takes its name."""

    def exchanged(tensor: Tensor) -> Tensor:
        return new if tensor is old else tensor

    old.name, new.name = old.name + "/before", old.name
    old.origin, new.origin = None, old.origin
    setattr(graph, side, [exchanged(tensor) for tensor in getattr(graph, side)])
    for signature in model.signatures or ():
        if signature.graph is graph:
            setattr(signature, side, [(key, exchanged(tensor)) for key, tensor in getattr(signature, side)])
    graph.pinned.discard(old)
    graph.pinned.add(new)
