"""Compiles exported networks with the host's compiler and runs their self-tests."""

import os
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from litebnn.micro.folder import sources
from toolchains.compilers import MICRO

CC = os.environ.get("CC", "cc")
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-ffp-contract=off")
SANITIZERS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@cache
def kernels(*flags: str) -> Path:
    """A library of all kernels in C, so that each network compiles only its own C files."""
    made = Path(mkdtemp(prefix="litebnn_micro_"))
    files = [*MICRO.glob("*.c"), *MICRO.glob("builtin/**/*.c")]
    include = (f"-I{MICRO}", f"-I{MICRO / 'builtin'}")
    _run([CC, *FLAGS, *flags, *include, "-c", *map(str, files)], made)
    _run(["ar", "rcs", "libkernels.a", *(f"{file.stem}.o" for file in files)], made)
    return made / "libkernels.a"


def check(folder: Path, *flags: str) -> str:
    """Compiles an exported network with its self-test, links the kernels' library, runs the self-test, and returns its
    output.

    Raises:
        AssertionError: the program does not compile, or a result is wrong.
    """
    library = kernels(*flags)
    networks = [path for path in (folder / "src").glob("*.c") if not _is_kernel(path)]
    program = folder / "selftest"
    sources = map(str, (*networks, folder / "main.c"))
    _run([CC, *FLAGS, *flags, f"-I{folder / 'src'}", *sources, str(library), "-o", str(program)], folder)
    return _run([str(program)], folder)


def check_alone(folder: Path, *flags: str) -> str:
    """Runs the self-test, compiled only from the files in the exported folder."""
    _run([CC, *FLAGS, *flags, "-Isrc", *map(str, (folder / "src").glob("*.c")), "main.c", "-o", "selftest"], folder)
    return _run(["./selftest"], folder)


def _is_kernel(path: Path) -> bool:
    return any(source.name == path.name for source in sources())


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout
