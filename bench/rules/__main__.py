"""Measures the cost of breaking each rule of docs/rules-for-models.md, on every instruction set (ISA).

Usage:

    python -m bench.rules [--target=NAME] [--passes=N] [--only=TEXT]

For each rule there are two networks, one that keeps the rule and one that breaks it. The command
times both networks on this machine. For other targets an emulator counts the instructions, and llvm-mca models the
cycles of a layer's loops if it knows the core. The results replace those of the same ISAs in the page, and in the table
of prices that `litebnn convert` and `litebnn inspect` read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from bench.costs.__main__ import ISAS, this_cpu
from bench.costs.measure import measure
from bench.kernels.__main__ import Counter, build, count_layer, count_network, cycles_of_layers
from bench.rules.pairs import Pair, Side, pairs
from docs.generated import generate
from litebnn.files import write_whole
from litebnn.report.guidelines import FILE, GUIDELINES, Price, read_prices
from toolchains.command_line import parser, run
from toolchains.targets import Target, ToolkitError, find_system_target

# The number of output channels in one tile of each Arm ISA.
TILES = {"neon64_tbl": 32, "neon64": 32, "neon64_in_order": 32, "neon32": 32}
# For each ISA, the core whose cycles llvm-mca models. SME2 has no such core, because llvm-mca models no core with SME2.
CORE = {"neon64_tbl": "neoverse-n1", "neon64": "cortex-a72", "neon64_in_order": "cortex-a53"}


def price(pair: Pair, isa: str, tile: int, unit: str, kept: float, broken: float) -> Price:
    """Makes a row of the table of prices, which are the costs of breaking rules. The network that keeps the pair's rule
    costs `kept`, and the network that breaks it costs `broken`."""
    each = (f"{total / side.amount:.4g}" for total, side in ((kept, pair.kept), (broken, pair.broken)))
    first, second = map(float, each)
    return Price(pair.rule, isa, unit, first, second, round(pair.degree(tile), 4), pair.per_value)


def timed(chosen: list[Pair], passes: int) -> Iterator[Price]:
    """For each rule for fast models, measures on this machine the nanoseconds of a network that keeps the rule and of
    one that breaks it."""
    words = this_cpu()[2]
    isas = [each for each in ISAS if set(each.needs) <= words]
    networks = {f"{pair.rule}/{side}": getattr(pair, side).model for pair in chosen for side in ("kept", "broken")}
    seconds = measure(networks, {each.isa: each.isa_option for each in isas}, passes)
    for pair in chosen:
        for each in isas:
            kept, broken = (seconds[f"{pair.rule}/{side}", each.isa] * 1e9 for side in ("kept", "broken"))
            yield price(pair, each.isa, each.tile, "ns", kept, broken)


def counted(chosen: list[Pair], target: Target) -> Iterator[Price]:
    """For each rule for fast models, counts on another target the instructions of a network that keeps the rule and of
    one that breaks it. If both networks are single layers, and llvm-mca can model the ISA, also computes their cycles.
    """
    program = build(target) / "bench" / "kernels" / "kernels_bench"
    counter = Counter(target)
    for isa in CORE if target.processor == "aarch64" else ("neon32",):
        for pair in chosen:
            sides = pair.kept, pair.broken
            if all(side.layer for side in sides):
                found = _layers(target, program, counter, isa, sides)
            elif target.processor == "aarch64":
                found = {"instructions": [count_network(target, isa, side.model) for side in sides]}
            else:
                continue
            for unit, totals in found.items():
                yield price(pair, isa, TILES[isa], unit, *totals)


def _layers(
    target: Target, program: Path, counter: Counter, isa: str, sides: tuple[Side, Side]
) -> dict[str, list[float]]:
    """The costs of two layers by unit: instructions, and cycles if llvm-mca can model a core."""
    layers = [count_layer(counter, program, isa, side.layer, "layer") for side in sides]
    instructions = {"instructions": [float(layer.instructions) for layer in layers]}
    if isa not in CORE:
        return instructions
    return {**instructions, "cycles": cycles_of_layers(target, program, layers, CORE[isa])}


def replace_prices(target: str, passes: int, only: str) -> None:
    """Measures the price of each rule on a target, which is the cost of breaking the rule. Replaces the target's rows
    in the table of prices (`FILE`) and in docs/rules-for-models.md.
    """
    chosen = [pair for pair in pairs() if only in pair.rule]
    if not chosen:
        raise ToolkitError(f"no rule has {only} in its name")
    row = find_system_target(target)
    found = []
    for each in counted(chosen, row) if row.triple else timed(chosen, passes):
        print(f"{each.rule:<28} {each.isa:<16} {each.kept:10.4g} {each.broken:10.4g} {each.unit}  {each.loss:5.0%}")
        found.append(each)
    names = [rule.name for rule in GUIDELINES]
    old = [each for each in read_prices(FILE.read_text(encoding="utf-8")) if each.rule in names]
    table = {(each.rule, each.isa, each.unit): each for each in (*old, *found)}
    rows = sorted(table.values(), key=lambda each: names.index(each.rule))
    lines = ",\n".join(json.dumps(asdict(each)) for each in rows)
    write_whole(FILE, f"[\n{lines}\n]\n".encode())
    generate()


def main() -> int:
    """Runs the command line and returns the exit code."""
    own = parser("bench.rules", __doc__)
    own.add_argument(
        "--passes", type=int, default=7, help="on this machine, the number of times that each network is timed"
    )
    own.add_argument("--only", default="", help="only rules whose name contains this text")
    return run(own, replace_prices, None)


if __name__ == "__main__":
    sys.exit(main())
