"""What the shared library shows, asks for and weighs."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

import litebnn
from litebnn.runtime.find import find_library
from tests.support.libraries import EXPORTS, check_library
from toolchains.targets import BUILD, load_targets

BUILT = [name for name in load_targets() if (BUILD / name / "liblitebnn.so").is_file()]


@pytest.fixture(scope="module", params=sorted({"host", *BUILT}))
def path(request: pytest.FixtureRequest, library: None) -> Path:
    """Every library that has been built in this checkout, for whatever CPU."""
    return find_library() if request.param == "host" else BUILD / request.param / "liblitebnn.so"


def test_shows_only_the_intended_names_and_needs_only_the_c_library(path: Path) -> None:
    check_library(path)


def test_has_the_version_of_the_package(library: None) -> None:
    version = ctypes.CDLL(str(find_library())).litebnn_version
    version.restype = ctypes.c_char_p
    assert version().decode() == litebnn.__version__


def test_is_small_when_stripped(path: Path) -> None:
    with path.open("rb") as file:
        # What is loaded, and with it all that strip leaves.
        size = sum(segment["p_filesz"] for segment in ELFFile(file).iter_segments("PT_LOAD"))
    assert size < 512 * 1024


def test_nm_agrees() -> None:
    if not shutil.which("nm"):
        pytest.skip("no nm: install binutils")
    try:
        library = find_library()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    output = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    assert sorted(line.split()[-1].partition("@")[0] for line in output.splitlines()) == EXPORTS
