"""Tests the exports, dependencies and size of the shared library."""

import ctypes
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

import litebnn
from litebnn.runtime.find import find_library
from tests.support.libraries import check_library
from toolchains.binaries import EXPORTS


@pytest.fixture(scope="module")
def path(library: None) -> Path:
    """The library for this machine. tests/toolchains/test_build.py checks those for other targets."""
    return find_library()


def test_shows_only_the_intended_names_and_needs_only_the_c_library(path: Path) -> None:
    check_library(path)


def test_has_the_version_of_the_package(library: None) -> None:
    version = ctypes.CDLL(str(find_library())).litebnn_version
    version.restype = ctypes.c_char_p
    assert version().decode() == litebnn.__version__


def test_is_small_when_stripped(path: Path) -> None:
    with path.open("rb") as file:
        # The size of the segments that a program loads is about the size of the stripped library.
        size = sum(segment["p_filesz"] for segment in ELFFile(file).iter_segments("PT_LOAD"))
    assert size < 644 * 1024


@pytest.mark.needs("binutils")
def test_nm_agrees(library: None) -> None:
    output = subprocess.run(
        ["nm", "-D", "--defined-only", find_library()], capture_output=True, text=True, check=True
    ).stdout
    assert sorted(line.split()[-1].partition("@")[0] for line in output.splitlines()) == EXPORTS
