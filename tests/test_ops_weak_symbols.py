"""Code compiled for one instruction set must not reach CPUs without it.

A linker keeps one copy of each inline function that a compiler has not inlined, whichever file it comes from. Were that
a file compiled with AVX-512, a CPU without it would run its instructions.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

ROOT = Path(__file__).resolve().parents[1]
# The name of the processor, and what the compiler's name begins with.
COMPILERS = {"host": ("", ""), "arm": ("arm", "arm-linux-gnueabihf-"), "aarch64": ("aarch64", "aarch64-linux-gnu-")}


def _objects_for_one_isa(folder: Path) -> list[Path]:
    """The library's objects whose commands choose instructions, or lie in the folder of an instruction set."""
    commands = json.loads((folder / "compile_commands.json").read_text())
    isas = ROOT / "ops" / "kernels" / "isa"
    objects = []
    for command in commands:
        source = Path(command["file"])
        chooses = any(word.startswith("-m") for word in command["command"].split())
        if chooses or (source.is_relative_to(isas) and source.parent not in (isas, isas / "portable")):
            objects.append(folder / command["command"].split(" -o ")[1].split()[0])
    return objects


def _weak_symbols(path: Path) -> list[str]:
    """Definitions that a linker may replace by another file's, or another file's by them."""
    with path.open("rb") as file:
        tables = [section for section in ELFFile(file).iter_sections() if isinstance(section, SymbolTableSection)]
        return [
            symbol.name
            for table in tables
            for symbol in table.iter_symbols()
            if symbol["st_info"]["bind"] in ("STB_WEAK", "STB_LOOS") and symbol["st_shndx"] != "SHN_UNDEF"
        ]


@pytest.mark.parametrize("build_type", ["Release", "Debug"])
@pytest.mark.parametrize("target", COMPILERS)
def test_objects_for_one_isa_share_nothing(target: str, build_type: str, tmp_path: Path) -> None:
    processor, prefix = COMPILERS[target]
    compiler = f"{prefix}g++" if prefix else "c++"
    for tool in ("cmake", "ninja", compiler):
        if not shutil.which(tool):
            pytest.skip(f"no {tool}: install it")
    options = [f"-DCMAKE_BUILD_TYPE={build_type}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
    if processor:
        options += ["-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={processor}"]
        options += [f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_C_COMPILER={prefix}gcc"]
    subprocess.run(["cmake", "-S", ROOT, "-B", tmp_path, "-G", "Ninja", *options], check=True, capture_output=True)
    objects = _objects_for_one_isa(tmp_path)
    assert objects
    names = [path.relative_to(tmp_path) for path in objects]
    subprocess.run(["cmake", "--build", tmp_path, "--target", *names], check=True, capture_output=True)
    weak = {path.name: names for path in objects if (names := _weak_symbols(path))}
    assert not weak, f"put these in an unnamed namespace, or do without them: {weak}"
