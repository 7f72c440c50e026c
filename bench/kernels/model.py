"""Cycles of whole layers on a core that is not at hand: the loops that an emulator has counted, as llvm-mca runs them.

The program's own machine code is modelled. Instructions that stand one behind another and are executed equally often
are taken for the body of a loop that goes on for ever: what one loop waits for from another is not seen, and neither
are caches and branches that are not foretold. What is not the program's own, like the C library's memcpy, takes a cycle
an instruction.
"""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from toolchains.targets import ToolkitError

# Binary multiply-adds of the instructions that the loops of 64-bit NEON do them with: lookups, and counts of bits.
MACS = {"tbl": 128, "cnt": 128}
ITERATIONS = 100
INSTRUCTION_BYTES = 4

Blocks = Counter[tuple[int, int]]
"""How often blocks were executed that begin at an offset in the program and have so many instructions."""


@dataclass(frozen=True)
class Loop:
    """Instructions that stand one behind another, and how often each is executed."""

    instructions: tuple[str, ...]
    executions: int

    @property
    def macs(self) -> int:
        """Binary multiply-adds of one execution."""
        return sum(MACS.get(text.split()[0], 0) for text in self.instructions)


@dataclass(frozen=True)
class LayerModel:
    """What llvm-mca says of a layer.

    Attributes:
        inner_loop: binary multiply-adds a cycle, of the loop that does most of them.
        cycles: of the whole layer.
    """

    inner_loop: float
    cycles: float


def analyzer() -> str | None:
    """The name of llvm-mca, None where it is not installed."""
    return next((name for name in ("llvm-mca-19", "llvm-mca") if shutil.which(name)), None)


def parse_blocks(output: str) -> Blocks:
    """What bench/kernels/insn_count.c has printed of the blocks of a program.

    >>> parse_blocks("block 10 3 7\\nblock 10 3 2\\n")
    Counter({(16, 3): 9})
    """
    blocks: Blocks = Counter()
    for offset, instructions, executions in re.findall(r"^block ([0-9a-f]+) (\d+) (\d+)$", output, re.MULTILINE):
        blocks[int(offset, 16), int(instructions)] += int(executions)
    return blocks


def parse_listing(listing: str) -> dict[int, str]:
    """The instructions of objdump's listing by their addresses, with which branches lead nowhere.

    >>> parse_listing("  10:\\ttbl\\tv0.16b, {v1.16b}, v2.16b\\n  14:\\tb.ne\\t10 <loop>  // b.any\\n")
    {16: 'tbl v0.16b, {v1.16b}, v2.16b', 20: 'b.ne #0'}
    """
    lines = re.findall(r"^ *([0-9a-f]+):\t(.*?)(?:\s*//.*)?$", listing, re.MULTILINE)
    return {int(address, 16): re.sub(r"\b[0-9a-f]+ <.*>$", "#0", text.replace("\t", " ")) for address, text in lines}


def loops_of(blocks: Blocks, instructions: dict[int, str]) -> tuple[list[Loop], int]:
    """The loops that blocks are executions of, and how many instructions were executed that are not the program's.

    >>> loops_of(Counter({(0, 2): 1, (4, 1): 5, (99, 2): 3}), {0: "nop", 4: "add x0, x0, #1"})
    ([Loop(instructions=('nop',), executions=1), Loop(instructions=('add x0, x0, #1',), executions=6)], 6)
    """
    executions: Counter[int] = Counter()
    for (begin, count), times in blocks.items():
        for i in range(count):
            executions[begin + i * INSTRUCTION_BYTES] += times
    own = sorted(address for address in executions if executions[address] > 0 and address in instructions)
    starts = [0] + [
        i + 1 for i, (a, b) in enumerate(pairwise(own)) if b != a + INSTRUCTION_BYTES or executions[a] != executions[b]
    ]
    parts = [own[begin:end] for begin, end in pairwise([*starts, len(own)])]
    loops = [Loop(tuple(instructions[address] for address in part), executions[part[0]]) for part in parts if part]
    return loops, sum(times for address, times in executions.items() if address not in instructions)


@cache
def cycles_of(loop: tuple[str, ...], core: str) -> float:
    """The cycles of a loop's body.

    Raises:
        ToolkitError: llvm-mca does not take it.
    """
    command = [analyzer() or "llvm-mca", "-mtriple=aarch64", f"-mcpu={core}", f"-iterations={ITERATIONS}"]
    run = subprocess.run(command, input="\n".join([*loop, ""]), capture_output=True, text=True)
    found = re.search(r"Total Cycles:\s+(\d+)", run.stdout)
    if found is None:
        raise ToolkitError(f"llvm-mca cannot tell the cycles of a loop on {core}: {run.stderr.strip()[-500:]}")
    return int(found[1]) / ITERATIONS


def model_layer(loops: Sequence[Loop], others: int, core: str) -> LayerModel:
    """What llvm-mca says of a layer that consists of `loops` and `others` instructions of elsewhere.

    Raises:
        ToolkitError: as for `cycles_of`.
    """
    inner = max(loops, key=lambda loop: loop.macs * loop.executions)
    cycles = sum(cycles_of(loop.instructions, core) * loop.executions for loop in loops)
    return LayerModel(inner.macs / cycles_of(inner.instructions, core), cycles + others)
