"""The tables of docs/rules-for-models.md, from the rules and their prices: the costs of breaking each rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bench.rules.pairs import pairs
from litebnn.report.guidelines import GUIDELINES, Price, nearest_to_time

# The Arm ISAs, in the order of the columns of the page's tables. SME2 is missing, because no CPU with SME2 was
# available, and llvm-mca models none.
_ARM = ("neon64_tbl", "neon64", "neon64_in_order", "neon32")
ISAS = ("avx512_vbmi", "avx512", "avx2", "portable", *_ARM)


def tables(prices: Iterable[Price]) -> dict[str, str]:
    """The tables of the page as markdown, by name."""
    rows = list(prices)
    of = nearest_to_time(rows)
    instructions = {(price.rule, price.isa): price for price in rows if price.unit == "instructions"}
    per_value = {price.rule for price in of.values() if price.per_value}
    shares = [rule.name for rule in GUIDELINES if rule.name not in per_value]
    values = [rule.name for rule in GUIDELINES if rule.name in per_value]
    rules = ["| rule | what to do | why |", "|---|---|---|"]
    rules += [f"| {rule.name} | {rule.fix} | {rule.why} |" for rule in GUIDELINES]
    return {
        "rules": "\n".join(rules),
        "shares": _table(shares, ISAS, lambda rule, isa: _share(of.get((rule, isa)))),
        "instructions": _table(shares, _ARM, lambda rule, isa: _share(instructions.get((rule, isa)))),
        "values": _table(values, ISAS, lambda rule, isa: _value(of.get((rule, isa)))),
    }


def _table(rules: Iterable[str], isas: Sequence[str], cell: Callable[[str, str], str]) -> str:
    examples = {pair.rule: pair.example for pair in pairs()}
    header = [f"| rule | kept, or broken | {' | '.join(f'`{isa}`' for isa in isas)} |", "|---" * (2 + len(isas)) + "|"]
    rows = [f"| {rule} | {examples[rule]} | {' | '.join(cell(rule, isa) for isa in isas)} |" for rule in rules]
    return "\n".join([*header, *rows])


def _share(price: Price | None) -> str:
    """The time of a network that breaks a rule, divided by the time of the same work in a network that keeps it."""
    return "–" if price is None else f"{price.broken / price.kept:.2f}"


def _value(price: Price | None) -> str:
    if price is None:
        return "–"
    unit = {"ns": "ns", "cycles": "cycles", "instructions": "instr."}[price.unit]
    return f"{price.broken - price.kept:+.2f} {unit}"
