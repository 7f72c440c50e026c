"""Gives advice on changes that make a model's binary layers faster, with the time that each change would save.

`rules.py` has the rules and their measured costs; docs/rules-for-models.md explains the rules.
"""

from __future__ import annotations

from collections.abc import Iterator

from litebnn.graph import Model
from litebnn.report.op_properties import short_name
from litebnn.report.rules import cost_of, findings
from litebnn.rules.build.notes import Notes


def advise(model: Model, notes: Notes) -> Iterator[str]:
    """Yields one line for each change that would make the model faster. Each line begins with the layer's name.

    Args:
        notes: the notes of the conversion, which know for each op the layer of the source model that it computes.
    """
    for layer in notes.layers:
        if layer.binary:
            yield from (f"{short_name(layer.name)}: {reason}" for reason in layer.reasons)
    for graph in model.graphs:
        for op in graph.ops:
            source = notes.layer_of(op)
            name = short_name(op.output.name if source is None else source.name) if op.outputs else op.name
            for rule, finding in findings(graph, op):
                cost = cost_of(rule, finding)
                if cost:
                    yield f"{name}: {finding.found}: {rule.fix}; {cost}"
