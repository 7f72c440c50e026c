"""Builds of the C++ code for its tests: as it ships, and under sanitizers."""

import functools
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from toolchains.compilers import Compiler, find_clang, find_gcc
from toolchains.targets import BUILD, ToolkitError, find_target

GOOGLETEST = Path("/usr/src/googletest")


@functools.cache
def build_folder(build: str) -> Path:
    """Configures a build; returns its folder."""
    if not GOOGLETEST.is_dir():
        pytest.skip("no GoogleTest sources: install Debian's googletest")
    folder = BUILD / "tests" / build
    run(*BUILDS[build].compiler().configure(folder, LITEBNN_BUILD_TESTS="ON", **BUILDS[build].options))
    return folder


def build_product(build: str, product: str) -> Path:
    """Builds one target of CMake's; returns the folder of the build."""
    folder = build_folder(build)
    run(*compiler().compile(folder, product))
    return folder


def compiler(target: str = "host") -> Compiler:
    """This machine's compiler for a target; skips the test where there is none."""
    try:
        return find_gcc(find_target(target))
    except ToolkitError as error:
        pytest.skip(str(error))


def sanitizing_compiler() -> Compiler:
    """Clang where it is installed, whose sanitizers see what gcc's do not, such as an offset to a null pointer."""
    try:
        return find_clang()
    except ToolkitError:
        return compiler()


class Build(NamedTuple):
    """One way of building the code, with these options of CMake's."""

    compiler: Callable[[], Compiler]
    options: dict[str, str]


def sanitized(compiler: Callable[[], Compiler], sanitizers: str) -> Build:
    options = {"build_type": "Debug", "CMAKE_CXX_FLAGS": "-O1", "LITEBNN_SANITIZE": sanitizers}
    return Build(compiler, options)


ADDRESS = "address,undefined,float-cast-overflow"
BUILDS = {
    "release": Build(compiler, {}),
    "address": sanitized(sanitizing_compiler, ADDRESS),
    # What Python loads is gcc's, whose sanitizers are libraries that can be loaded before Python.
    "address-gcc": sanitized(compiler, ADDRESS),
    "thread": sanitized(sanitizing_compiler, "thread"),
}


def run(*command: str | Path, environment: dict[str, str] | None = None) -> str:
    """Runs a command; returns what it printed, and fails the test with that where the command fails."""
    result = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | (environment or {}),
    )
    assert result.returncode == 0, f"{' '.join(map(str, command))}\n{result.stdout[-8000:]}"
    return result.stdout
