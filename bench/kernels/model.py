"""Models the cycles of whole layers on a core that is not available here, from an emulator's counts and llvm-mca's
model.

The model takes the machine code of the program itself. It treats consecutive instructions with equal execution counts
as the body of an endless loop. It ignores dependencies between loops, cache misses and branch mispredictions.
Instructions of other libraries, such as those of memcpy, take one cycle each.
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

# The number of binary multiply-adds that one instruction TBL or CNT stands for in the inner loops of 64-bit NEON.
MACS = {"tbl": 128, "cnt": 128}
ITERATIONS = 100
INSTRUCTION_BYTES = 4

Blocks = Counter[tuple[int, int]]
"""The execution counts of basic blocks. A block is a pair: its offset in the program and its number of instructions."""


@dataclass(frozen=True)
class Loop:
    """Consecutive instructions that are executed equally often, and their execution count."""

    instructions: tuple[str, ...]
    executions: int

    @property
    def macs(self) -> int:
        """The number of binary multiply-adds in one execution of the loop's instructions."""
        return sum(MACS.get(text.split()[0], 0) for text in self.instructions)


@dataclass(frozen=True)
class LayerModel:
    """llvm-mca's results for a layer.

    Attributes:
        inner_loop: binary multiply-adds per cycle of the loop that does most of the layer's multiply-adds.
        cycles: cycles of the whole layer.
    """

    inner_loop: float
    cycles: float


def analyzer() -> str | None:
    """The name of the installed llvm-mca, or None."""
    return next((name for name in ("llvm-mca-19", "llvm-mca") if shutil.which(name)), None)


def parse_blocks(output: str) -> Blocks:
    """Parses the blocks in the output of bench/kernels/insn_count.c.

    >>> parse_blocks("block 10 3 7\\nblock 10 3 2\\n")
    Counter({(16, 3): 9})
    """
    blocks: Blocks = Counter()
    for offset, instructions, executions in re.findall(r"^block ([0-9a-f]+) (\d+) (\d+)$", output, re.MULTILINE):
        blocks[int(offset, 16), int(instructions)] += int(executions)
    return blocks


def parse_listing(listing: str) -> dict[int, str]:
    """Parses objdump's listing to a map from addresses to instructions. Branch targets are replaced by 0.

    >>> parse_listing("  10:\\ttbl\\tv0.16b, {v1.16b}, v2.16b\\n  14:\\tb.ne\\t10 <loop>  // b.any\\n")
    {16: 'tbl v0.16b, {v1.16b}, v2.16b', 20: 'b.ne #0'}
    """
    lines = re.findall(r"^ *([0-9a-f]+):\t(.*?)(?:\s*//.*)?$", listing, re.MULTILINE)
    return {int(address, 16): re.sub(r"\b[0-9a-f]+ <.*>$", "#0", text.replace("\t", " ")) for address, text in lines}


def loops_of(blocks: Blocks, instructions: dict[int, str]) -> tuple[list[Loop], int]:
    """Splits the executed blocks of a program into loops. Also returns the number of executed instructions that are not
    among the program's `instructions`.

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
    """The cycles that one iteration of a loop takes.

    Raises:
        ToolkitError: llvm-mca rejects the loop.
    """
    command = [analyzer() or "llvm-mca", "-mtriple=aarch64", f"-mcpu={core}", f"-iterations={ITERATIONS}"]
    run = subprocess.run(command, input="\n".join([*loop, ""]), capture_output=True, text=True)
    found = re.search(r"Total Cycles:\s+(\d+)", run.stdout)
    if found is None:
        raise ToolkitError(f"llvm-mca cannot tell the cycles of a loop on {core}: {run.stderr.strip()[-500:]}")
    return int(found[1]) / ITERATIONS


def model_layer(loops: Sequence[Loop], others: int, core: str) -> LayerModel:
    """llvm-mca's results for a layer. `loops` are the program's loops that run for the layer. `others` is the number of
    executed instructions in other code, such as libraries; each counts as one cycle.

    Raises:
        ToolkitError: the error of `cycles_of`.
    """
    inner = max(loops, key=lambda loop: loop.macs * loop.executions)
    cycles = sum(cycles_of(loop.instructions, core) * loop.executions for loop in loops)
    return LayerModel(inner.macs / cycles_of(inner.instructions, core), cycles + others)
