"""The steps before and after a rewrite of a model's graphs."""

from __future__ import annotations

from litebnn.graph.compact import compact
from litebnn.graph.graph import Model
from litebnn.graph.origin import begin_origins, write_origins

CONTROL_DEPENDENCIES = "model_control_dependencies"


def begin_rewriting(model: Model) -> None:
    """Drops metadata that would name other ops after a rewrite, and records where each tensor comes from."""
    # A rewrite changes the indices of ops. Without control dependencies, runtimes keep ops with side effects in the
    # order of the file.
    model.metadata = [(name, buffer) for name, buffer in model.metadata if name != CONTROL_DEPENDENCIES]
    begin_origins(model)


def finish_rewriting(model: Model) -> None:
    """Removes tensors, buffers and operator codes that nothing refers to any more. For each tensor, stores in the model
    from which tensor of the source model it comes."""
    compact(model)
    write_origins(model)
