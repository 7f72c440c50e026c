"""Compiles exported networks with the host's compiler and runs their self-tests."""

import os
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from litebnn.micro.folder import sources_folder

CC = os.environ.get("CC", "cc")
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-ffp-contract=off")
SANITIZERS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@cache
def kernels(*flags: str) -> Path:
    """A library of all kernels in C, so that each network compiles only its own C files."""
    folder, made = sources_folder(), Path(mkdtemp(prefix="litebnn_micro_"))
    sources = [*folder.glob("*.c"), *folder.glob("builtin/**/*.c")]
    include = (f"-I{folder}", f"-I{folder / 'builtin'}")
    _run([CC, *FLAGS, *flags, *include, "-c", *map(str, sources)], made)
    _run(["ar", "rcs", "libkernels.a", *(f"{source.stem}.o" for source in sources)], made)
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
    return any(sources_folder().rglob(path.name))


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout
