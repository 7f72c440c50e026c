"""Gives advice on changes that make a model's binary layers faster, with the time that each change would save.

`rules.py` has the rules and their measured costs; docs/rules-for-models.md explains the rules.
"""

from __future__ import annotations

from collections.abc import Iterator

from litebnn.build.notes import Notes
from litebnn.graph import Model
from litebnn.report.costs import tiles
from litebnn.report.op_properties import short_name
from litebnn.report.rules import WORTH_SAYING, Finding, Price, Rule, findings, prices


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


def cost_of(rule: Rule, finding: Finding) -> str:
    """The cost of a broken rule as text. If the cost differs between instruction sets (ISAs), the text names the ISAs.
    The text is empty if the broken rule costs nothing.
    """
    known = [price for (name, _), price in prices().items() if name == rule.name]
    if finding.values:
        nanoseconds = [price.broken - price.kept for price in known if price.unit == "ns"]
        low, high = min(nanoseconds, default=0.0), max(nanoseconds, default=0.0)
        each = f"{max(low, 0.0):.2g} to {high:.2g} ns each on x86-64"
        return f"{finding.values:,} values go through memory once more, {each}" if high > 0 else ""
    shares = {price.isa: _share(price, finding) for price in known}
    if max(shares.values(), default=0.0) < WORTH_SAYING:
        return ""
    worst = max(shares, key=lambda isa: shares[isa])
    return f"it costs {max(min(shares.values()), 0.0):.0%} to {shares[worst]:.0%} of the layer's time ({worst})"


def _share(price: Price, finding: Finding) -> float:
    return price.share(finding.degree(tiles().get(price.isa, 1)))
