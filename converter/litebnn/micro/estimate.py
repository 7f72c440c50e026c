"""Estimates the instructions and cycles of an exported network's steps."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from litebnn.micro.placement import Step

# The file with the costs of C functions: measured instructions for each unit of work, such as a
# multiply-add. `python -m bench.micro.builtin` measures these costs in QEMU.
COSTS_FILE = Path(__file__).parent / "builtin_costs.json"
# The name of the kind of work whose amounts are already numbers of instructions, and need not be multiplied by a cost.
INSTRUCTIONS = "instructions"
# Cycles per instruction, from LLVM's models of the binary kernels' inner loops, without wait states of the flash. LLVM
# has no model of RV32IMC; an instruction of a simple core takes at least one cycle.
CYCLES = {"cortex-m4": 1.1, "cortex-m7": 0.61, "cortex-m55": 1.17, "rv32imc": 1.0}


def work_of(step: Step) -> Counter[tuple[str, str]]:
    """The amounts of work in a step of the network. Each key is a C function and a kind of work."""
    found: Counter[tuple[str, str]] = Counter()
    for index, (_, lowered) in enumerate(step.ops):
        # The ops of a strip run together, and each iteration computes one row. The first op's amounts of work are for
        # all iterations together; the amounts of the other ops are for one iteration.
        times = step.iterations if index else 1
        for call in lowered.calls:
            found[call.function, "calls"] += step.iterations * call.images
            for name, amount in call.work.items():
                found[call.function, name] += amount * times
    return found


def instructions_of(step: Step, target: str) -> int | None:
    """The estimated instructions of a step; None if the step calls a function whose costs were not measured."""
    costs, total = builtin_costs()[target], 0.0
    for (function, name), amount in work_of(step).items():
        if name == INSTRUCTIONS:
            total += amount
        elif function in costs:
            total += costs[function].get(name, 0.0) * amount
        elif not function.startswith("litebnn_bconv2d"):
            return None
    return round(total)


@cache
def builtin_costs() -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    """Reads the costs of C functions, by target, function and kind of work."""
    loaded: dict[str, dict[str, dict[str, float]]] = json.loads(COSTS_FILE.read_text(encoding="utf-8"))
    return loaded
