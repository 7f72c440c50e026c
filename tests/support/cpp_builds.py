"""Builds of the C++ code for its tests: the release build, and builds with sanitizers."""

import functools
import os
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fuzz.__main__ import SANITIZED
from tests.needs import need
from toolchains.build import build_tests, locked
from toolchains.compilers import Compiler, find_clang, find_clang_tool, find_gcc
from toolchains.needs import missing
from toolchains.probes import SANITIZERS, gcc_library
from toolchains.targets import BUILD, find_target, load_targets


@functools.cache
def build_products(build: str, *products: str) -> Path:
    """Builds CMake targets in one call, so that all CPU cores work. Returns the build's folder."""
    need("googletest")
    if build == "release":
        # The ops were compiled in this folder already, for the library.
        return build_tests("host", "gcc", *products)[0].parents[2]
    compiler = BUILDS[build].compiler()
    # CMake forgets the options of a folder whose compiler changes.
    folder = BUILD / "tests" / f"{build}-{compiler.name}"
    with locked(folder):
        run(*compiler.configure(folder, **{"LITEBNN_BUILD_TESTS": "ON", **BUILDS[build].options}))
        run(*compiler.compile(folder, *products))
    return folder


def compiler(target: str = "host") -> Compiler:
    """The compiler of this machine for a target."""
    row = find_target(target)
    if row.triple:
        need(f"{row.triple}-g++")
    return find_gcc(row)


def sharing_compiler() -> Compiler:
    """This machine's compiler, as the cross compiler for this kind of CPU if it has that name too.

    ccache then shares what is compiled with the tests of that target. For CMake, such a build is a cross build.
    """
    row, own = load_targets().get(platform.machine()), compiler()
    if row is None or "CXX" in os.environ or missing(f"{row.triple}-g++"):
        return own
    return find_gcc(row) if run("c++", "-dumpmachine").strip() == row.triple else own


def sanitizing_compiler() -> Compiler:
    """The compiler for sanitizers: Clang if it is installed. Its sanitizers find more errors than those of gcc, such as
    an offset to a null pointer."""
    return compiler() if missing("clang") else find_clang()


def preloaded(compiler: str) -> dict[str, str]:
    """The environment variables with which Python can load a library that gcc or Clang built with sanitizers.

    libstdc++ is loaded with the sanitizers, because they intercept its exceptions. Leaks are ignored, because Python
    itself exits with memory in use.
    """
    libraries = [gcc_library(name) for name in SANITIZERS]
    if compiler == "clang":
        # The name depends on how Clang was packaged. This library contains both sanitizers.
        names = f"libclang_rt.asan-{platform.machine()}.so", "libclang_rt.asan.so"
        found = [run(find_clang_tool("clang"), f"-print-file-name={name}").strip() for name in names]
        runtime = next(filter(os.path.isabs, found), "")
        assert runtime, "Clang's shared AddressSanitizer is missing: apt install libclang-rt-dev"
        libraries = [runtime, libraries[-1]]
    return {"LD_PRELOAD": ":".join(libraries), "ASAN_OPTIONS": "detect_leaks=0"}


class Build(NamedTuple):
    """A build of the code: a compiler, and options for CMake."""

    compiler: Callable[[], Compiler]
    options: dict[str, str]


def sanitized(compiler: Callable[[], Compiler], **more: str) -> Build:
    return Build(compiler, {"build_type": "Debug", **SANITIZED, **more})


BUILDS = {
    "address": sanitized(sanitizing_compiler),
    # This build compiles each file of the ops, and of its two tests, by itself, so that each must include what it uses.
    "thread": sanitized(sanitizing_compiler, LITEBNN_SANITIZE="thread", LITEBNN_UNITY_BUILD="OFF"),
}


def run(*command: str | Path, environment: dict[str, str] | None = None) -> str:
    """Runs a command and returns its output. If the command fails, the test fails with this output."""
    result = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | (environment or {}),
    )
    assert result.returncode == 0, f"{' '.join(map(str, command))}\n{result.stdout[-8000:]}"
    return result.stdout
