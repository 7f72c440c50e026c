"""The steps before and after a rewrite of a model's graphs, and the checks that a runtime will load the result."""

from __future__ import annotations

from litebnn.errors import ConversionError
from litebnn.graph.compact import compact
from litebnn.graph.control_dependencies import check_control_dependencies, drop_control_dependencies
from litebnn.graph.custom_ops import check_custom_ops
from litebnn.graph.graph import Model
from litebnn.graph.origin import begin_origins, write_origins


def begin_rewriting(model: Model) -> None:
    """Drops metadata that would name other ops after a rewrite, and records where each tensor comes from."""
    drop_control_dependencies(model)
    begin_origins(model)


def finish_rewriting(model: Model) -> None:
    """Removes tensors, buffers and operator codes that nothing refers to any more. For each tensor, stores in the model
    from which tensor of the source model it comes."""
    compact(model)
    write_origins(model)


def check_loads(model: Model, what: str) -> None:
    """Checks litebnn's ops and their consumers as a runtime would, so that no result is returned that cannot load.

    Args:
        what: the name by which messages call the model.

    Raises:
        ConversionError: a runtime would refuse the model; the message says why.
    """
    try:
        for graph in model.graphs:
            check_custom_ops(graph)
        check_control_dependencies(model)
    except ConversionError as error:
        raise ConversionError(f"{what} would not load: {error}") from error
