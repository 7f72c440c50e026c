"""Prints the table of targets with this machine's tools for each target, as `invoke targets` does."""

import argparse
import sys

from rich.console import Console
from rich.table import Table

from toolchains.command_line import run
from toolchains.needs import missing, toolchain_needs
from toolchains.targets import Target, load_targets

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
NO_TERMINAL = 1000  # characters per line if the width is unknown


def compilers_found(target: Target) -> list[str]:
    """The names of the target's toolchains that are installed with everything that they need."""
    return [name for name in target.toolchains if not any(map(missing, toolchain_needs(target, name)))]


def table() -> Table:
    """Returns the table with one row per target. Text that is too long for a column is wrapped."""
    result = Table()
    for column in COLUMNS:
        result.add_column(column, overflow="fold")
    for target in load_targets().values():
        cpu = target.zig_cpu if target.zig_cpu != "baseline" else ""
        compilers = ", ".join(compilers_found(target)) or "none yet"
        program = "" if not target.emulator or missing(target.emulator) else target.emulator
        result.add_row(target.name, target.description, target.triple, cpu, target.glibc, compilers, program or "-")
    return result


def as_markdown() -> str:
    """The targets with all their properties in targets.toml, as a markdown table."""
    lines = [f"| {' | '.join(DOCUMENTED)} |", f"|{'---|' * len(DOCUMENTED)}"]
    for target in load_targets().values():
        flags = " ".join(target.gcc_flags)
        cells = (target.name, target.family, target.triple, flags, target.zig_cpu, target.emulator_cpu, target.wheel)
        toolchains = ", ".join(f"`{name}`" for name in target.toolchains)
        code = (f"`{cell}`" if cell else "" for cell in cells)
        name, *values = code
        lines.append(f"| {' | '.join([name, target.description, *values, target.glibc, toolchains])} |")
    return "\n".join(lines) + "\n"


def print_table() -> None:
    """Prints the targets with this machine's tools."""
    Console(width=None if sys.stdout.isatty() else NO_TERMINAL).print(table())


def main() -> int:
    """Runs the command line and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m toolchains.table", description="Print the table of targets.")
    return run(parser, print_table, None)


if __name__ == "__main__":
    sys.exit(main())
