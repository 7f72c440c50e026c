"""Builds the op library for a target: build/TARGET/liblitebnn.so, or its name on the target's system.

Usage:

    python -m toolchains.build --target=rpi4 --toolchain=zig

CMake works in build/TARGET/TOOLCHAIN. A finished product replaces the previous one atomically.
"""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from toolchains.binaries import hide, is_macho, requirements
from toolchains.choice import find_compiler
from toolchains.command_line import parser, run
from toolchains.compilers import Compiler
from toolchains.runtime_library import library_in, runtime_folder
from toolchains.targets import ROOT, Target, ToolkitError, find_system_target, find_target

MICRO_LIBRARY = "liblitebnn_micro.a"
PROGRAMS = ("label_image", "benchmark_model", "run_model", "litebnn-board-benchmark")
# These programs are not built for Windows. litebnn-board-benchmark measures the board by a shell script.
NOT_ON_WINDOWS = ("litebnn-board-benchmark",)
# The benchmark of kernels in bench/kernels, as CMake names it.
BENCHMARK = "kernels_bench"
READ_BY_CMAKE = ("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS")


def build(target: str, toolchain: str = "auto", *, programs: bool = True) -> Path:
    """Builds the op library, and the example programs if `invoke runtime` has fetched the runtime's library.

    Args:
        target: a row of targets.toml.
        toolchain: "auto", or one of TOOLCHAINS in targets.py that the row of the target allows.
        programs: False builds the library alone.

    Returns:
        The path of the library, build/TARGET/liblitebnn.so, or liblitebnn_micro.a for a microcontroller. Programs, if
        built, and the runtime's library are in the same folder. If the build fails, all files of an earlier build are
        unchanged.

    Raises:
        ToolkitError: the target or toolchain is unknown, there is no compiler, or the build failed.

    Example:
        >>> build("rpi4", "zig")  # doctest: +SKIP
        PosixPath('.../build/rpi4/liblitebnn.so')
    """
    row = find_target(target)
    compiler = find_compiler(row, toolchain)
    with locked(row.folder):
        return _build(row, compiler, *([] if programs or row.is_bare_metal else ["litebnn"]))


def build_tests(target: str, toolchain: str, *names: str) -> list[Path]:
    """Builds the library and the C++ tests called `names`, by default all; returns the paths of the test programs.

    Raises:
        ToolkitError: as for `build`.
    """
    row = find_system_target(target)
    compiler = find_compiler(row, toolchain)
    with locked(row.folder):
        _build(row, compiler, "litebnn", *(names or ("litebnn_tests",)))
    folder = work_folder(row, compiler) / "ops" / "tests"
    # A folder of an older checkout may also contain programs that are no longer built.
    return [folder / name for name in names or (folder / "programs.txt").read_text(encoding="utf-8").split()]


def build_benchmark(target: str, toolchain: str) -> Path:
    """Builds the library and the benchmark of kernels, and returns the folder in which CMake works. An earlier library
    of `build` is unchanged.

    Raises:
        ToolkitError: as for `build`.
    """
    row = find_system_target(target)
    compiler = find_compiler(row, toolchain)
    with locked(row.folder):
        _compile(row, compiler, "litebnn", BENCHMARK)
    return work_folder(row, compiler)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """A context manager that locks a folder, so that only one build uses it at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        yield


def programs_of(target: Target) -> list[str]:
    """The file names of the example programs for a target."""
    left_out = NOT_ON_WINDOWS if target.system == "Windows" else ()
    return [name + target.names.program_suffix for name in PROGRAMS if name not in left_out]


def work_folder(target: Target, compiler: Compiler) -> Path:
    """The folder in which CMake works."""
    return target.folder / compiler.name


def _compile(target: Target, compiler: Compiler, *products: str) -> None:
    """Builds CMake's `products` in the work folder; without any, all of the project."""
    work = work_folder(target, compiler)
    _forget_other_compiler(work, compiler)
    runtime = runtime_folder(target.name)
    options = {
        "LITEBNN_BUILD_TESTS": "ON" if {*products} - {"litebnn", BENCHMARK} else "OFF",
        "LITEBNN_BUILD_BENCHMARKS": "ON" if BENCHMARK in products else "OFF",
        "LITEBNN_VERSIONED_SONAME": "OFF",
        "LITEBNN_TFLITE_DIR": str(runtime) if runtime.is_dir() else "",
    }
    if target.is_bare_metal:
        options = {}
    steps = {"configuring": compiler.configure(work, **options), "compiling": compiler.compile(work, *products)}
    with work.with_suffix(".log").open("w", encoding="utf-8") as log:
        for step, command in steps.items():
            print(f"{target.name}: {step} with {compiler.description}", flush=True)
            log.write(f"$ {' '.join(command)}\n")
            log.flush()
            code = compiler.run(command, log)
            log.flush()
            if code:
                cause = first_error(Path(log.name).read_text(encoding="utf-8", errors="replace"))
                raise ToolkitError(
                    f"{step} {target.name} failed with code {code}{cause}; all of it: {_shown_path(log.name)}"
                )


def _build(target: Target, compiler: Compiler, *products: str) -> Path:
    """Builds CMake's `products`; without any, all of the project: the library, and the programs if there is a runtime.
    Returns the path of the library."""
    start = time.monotonic()
    _compile(target, compiler, *products)
    work, runtime = work_folder(target, compiler), runtime_folder(target.name)
    others = [work / "programs" / name for name in programs_of(target)] if runtime.is_dir() and not products else []
    others += [library_in(runtime)] if others else []
    name = MICRO_LIBRARY if target.is_bare_metal else target.names.library
    if is_macho(work / name):
        hide(work / name)
    library = _put_in_place(work / name, others, target.folder)
    for product in [*(target.folder / other.name for other in others), library]:
        facts = [f"{target.name}: {_shown_path(product)}", f"{product.stat().st_size / 1024:.0f} KiB"]
        facts += [] if target.is_bare_metal else [requirements(product)]
        if product == library:
            facts.append(f"{time.monotonic() - start:.1f} s")
        print(", ".join(filter(None, facts)), flush=True)
    return library


def _shown_path(path: str | Path) -> str:
    path = Path(path)
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def _forget_other_compiler(work: Path, compiler: Compiler) -> None:
    """Empties the folder if it was configured for another compiler or other flags, because CMake never changes the
    compiler or flags of a configured folder."""
    stamp = work / "compiler.json"
    variables = [os.environ.get(name) for name in READ_BY_CMAKE]
    wanted = json.dumps(
        [str(ROOT), compiler.description, compiler.cmake, compiler.ninja, dict(compiler.cmake_arguments), variables]
    )
    if work.exists() and (not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted):
        shutil.rmtree(work)
    work.mkdir(parents=True, exist_ok=True)
    stamp.write_text(wanted, encoding="utf-8")


def first_error(log: str) -> str:
    """The first error in a build's log, as ": LINE"; "" if the log has no error."""
    # In its messages, CMake prints the position of an error first, and the reason in the next line.
    found = re.search(r"^(CMake Error.*:\n+.+|CMake Error.*|.*error:.*)", log, re.MULTILINE | re.IGNORECASE)
    return f": {' '.join(found[0].split())}" if found else ""


def _put_in_place(library: Path, others: list[Path], folder: Path) -> Path:
    """Copies the library and the files `others` into `folder`, each atomically; returns the library's new path."""
    for product in [library, *others]:
        copy_whole(product, folder)
    return folder / library.name


def copy_whole(file: Path, folder: Path) -> None:
    """Copies a file into a folder atomically. Processes that use the previous file keep its content."""
    whole = folder / f".{file.name}.{os.getpid()}.new"
    shutil.copy2(file, whole)
    whole.replace(folder / file.name)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    return run(parser("toolchains.build", __doc__, toolchain="auto"), build, arguments)


if __name__ == "__main__":
    sys.exit(main())
