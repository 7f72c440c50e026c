"""Prints the table of targets, with what this machine has for each.

python -m toolchains.table
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from toolchains.compilers import find_gcc, find_ndk, ziglang_program
from toolchains.emulate import emulator
from toolchains.targets import Target, ToolkitError, load_targets

Found = TypeVar("Found")

COLUMNS = ("target", "what it is for", "triple", "CPU", "glibc", "compilers found", "emulator found")


def compilers_found(target: Target) -> list[str]:
    """Names of the toolchains whose compiler for `target` is installed here. Docker is not asked."""
    if target.ndk_abi:
        return ["ndk"] if _found(find_ndk, target) else []
    gcc = ["gcc"] if _found(find_gcc, target) else []
    return gcc + (["zig"] if ziglang_program() else [])


def _found(find: Callable[[Target], Found], target: Target) -> Found | None:
    try:
        return find(target)
    except ToolkitError:
        return None


def table() -> Table:
    """One row a target."""
    result = Table(*COLUMNS)
    for target in load_targets().values():
        cpu = target.zig_cpu if target.zig_cpu != "baseline" else ""
        compilers = ", ".join(compilers_found(target)) or "none yet"
        program = Path(_found(emulator, target) or "-").name
        result.add_row(target.name, target.description, target.triple, cpu, target.glibc, compilers, program)
    return result


if __name__ == "__main__":
    Console().print(table())
