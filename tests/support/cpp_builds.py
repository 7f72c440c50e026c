"""Builds of the C++ code for its tests: as it ships, and under sanitizers."""

import functools
import os
import subprocess
from pathlib import Path

import pytest

from toolchains.compilers import Compiler, find_clang, find_gcc
from toolchains.targets import BUILD, ToolkitError, find_target

GOOGLETEST = Path("/usr/src/googletest")

ADDRESS = "address,undefined,float-cast-overflow"
# What Python loads is gcc's, whose sanitizers are libraries that can be loaded before Python.
BUILDS = {"release": "", "address": ADDRESS, "address-gcc": ADDRESS, "thread": "thread"}


@functools.cache
def build_folder(build: str) -> Path:
    """Configures a build; returns its folder."""
    if not GOOGLETEST.is_dir():
        pytest.skip("no GoogleTest sources: install Debian's googletest")
    folder = BUILD / "tests" / build
    options = {"LITEBNN_BUILD_TESTS": "ON", "LITEBNN_SANITIZE": BUILDS[build]}
    if BUILDS[build]:
        chosen = compiler() if build == "address-gcc" else sanitizing_compiler()
        run(*chosen.configure(folder, "Debug", CMAKE_CXX_FLAGS="-O1", **options))
    else:
        run(*compiler().configure(folder, **options))
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
