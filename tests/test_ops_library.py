"""What the shared library shows, asks for and weighs."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from litebnn.runtime.find import find_library
from toolchains.targets import BUILD, load_targets

INTENDED = {
    "litebnn_ops",
    "litebnn_registration",
    "litebnn_version",
    "tflite_plugin_create_delegate",
    "tflite_plugin_destroy_delegate",
}
BUILT = [name for name in load_targets() if (BUILD / name / "liblitebnn.so").is_file()]
# The loader itself is named where thread-local storage is used.
ALLOWED = re.compile(r"^(libc\.so|libm\.so|libpthread\.so|ld-linux.*\.so|libdl\.so)\b")


@pytest.fixture(scope="module", params=sorted({"host", *BUILT}))
def path(request: pytest.FixtureRequest, library: None) -> Path:
    """Every library that has been built in this checkout, for whatever CPU."""
    return find_library() if request.param == "host" else BUILD / request.param / "liblitebnn.so"


def test_shows_only_the_intended_names(path: Path) -> None:
    with path.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".dynsym").iter_symbols()
        defined = {symbol.name for symbol in symbols if symbol["st_shndx"] != "SHN_UNDEF" and symbol.name}
    assert defined == INTENDED


def test_needs_only_the_c_library(path: Path) -> None:
    with path.open("rb") as file:
        needed = [tag.needed for tag in ELFFile(file).get_section_by_name(".dynamic").iter_tags("DT_NEEDED")]
    assert [name for name in needed if not ALLOWED.match(name)] == []


def test_is_small_when_stripped(path: Path) -> None:
    with path.open("rb") as file:
        # What is loaded, and with it all that strip leaves.
        size = sum(segment["p_filesz"] for segment in ELFFile(file).iter_segments("PT_LOAD"))
    assert size < 400 * 1024


def test_nm_agrees() -> None:
    if not shutil.which("nm"):
        pytest.skip("no nm: install binutils")
    try:
        library = find_library()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    output = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    assert {line.split()[-1].partition("@")[0] for line in output.splitlines()} == INTENDED
