"""Prints the table of targets, with what this machine has for each; or as docs/targets.md has it.

python -m toolchains.table [--markdown]
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from toolchains.command_line import run
from toolchains.compilers import find_gcc, find_ndk, ziglang_program
from toolchains.emulate import emulator
from toolchains.targets import Target, ToolkitError, load_targets

COLUMNS = ("target", "what it is for", "triple", "CPU", "glibc", "compilers found", "emulator found")
DOCUMENTED = (
    "target",
    "for",
    "family",
    "triple",
    "GCC",
    "zig's CPU",
    "emulated CPU",
    "wheel",
    "glibc at least",
    "toolchains",
)
NO_TERMINAL = 1000  # characters in a line, where nothing says how many fit


def compilers_found(target: Target) -> list[str]:
    """Names of the target's toolchains whose compiler is installed here. Docker is not asked."""
    looks: dict[str, Callable[[Target], object]]
    looks = {"gcc": find_gcc, "zig": lambda target: ziglang_program(), "ndk": find_ndk}
    return [name for name in target.toolchains if name in looks and _found(looks[name], target)]


def _found(find: Callable[[Target], object], target: Target) -> object:
    """What `find` finds, or None."""
    try:
        return find(target)
    except ToolkitError:
        return None


def table() -> Table:
    """One row a target; nothing is left out of a narrow column, it goes on in the next line."""
    result = Table()
    for column in COLUMNS:
        result.add_column(column, overflow="fold")
    for target in load_targets().values():
        cpu = target.zig_cpu if target.zig_cpu != "baseline" else ""
        compilers = ", ".join(compilers_found(target)) or "none yet"
        program = Path(str(_found(emulator, target) or "-")).name
        result.add_row(target.name, target.description, target.triple, cpu, target.glibc, compilers, program)
    return result


def as_markdown() -> str:
    """The targets and all that targets.toml says of them, as a table of a document."""
    lines = [f"| {' | '.join(DOCUMENTED)} |", f"|{'---|' * len(DOCUMENTED)}"]
    for target in load_targets().values():
        flags = " ".join(target.gcc_flags)
        cells = (target.name, target.family, target.triple, flags, target.zig_cpu, target.emulator_cpu, target.wheel)
        toolchains = ", ".join(f"`{name}`" for name in target.toolchains)
        code = (f"`{cell}`" if cell else "" for cell in cells)
        name, *values = code
        lines.append(f"| {' | '.join([name, target.description, *values, target.glibc, toolchains])} |")
    return "\n".join(lines) + "\n"


def print_table(markdown: bool) -> None:
    """Prints one of the two tables."""
    if markdown:
        print(as_markdown(), end="")
    else:
        Console(width=None if sys.stdout.isatty() else NO_TERMINAL).print(table())


def main() -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m toolchains.table", description="Print the table of targets.")
    parser.add_argument("--markdown", action="store_true", help="as docs/targets.md has it")
    return run(parser, print_table, None)


if __name__ == "__main__":
    sys.exit(main())
