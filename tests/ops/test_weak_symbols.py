"""Tests that code compiled for one ISA cannot run on CPUs without this ISA.

If several files contain the same inline function that was not inlined, a linker keeps one copy from any of them. If
that file was compiled with AVX-512, a CPU without AVX-512 would run its instructions.
"""

import json
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from tests.needs import need
from tests.support.cpp_builds import compiler, run, sharing_compiler
from toolchains.targets import ROOT

pytestmark = pytest.mark.deep

ISAS = ROOT / "ops" / "kernels" / "isa"


def _objects_for_one_isa(folder: Path) -> list[str]:
    """The library's object files that are compiled with flags for an instruction set, or that lie in the folder of an
    ISA."""
    commands = json.loads((folder / "compile_commands.json").read_text(encoding="utf-8"))
    words = {command["file"]: set(command["command"].split()) for command in commands}
    common = set.intersection(*(said for file, said in words.items() if file.endswith(".cc")))
    return [
        str((folder / command["output"]).relative_to(folder))
        for command in commands
        if any(word.startswith("-m") for word in words[command["file"]] - common)
        or Path(command["file"]).parent in {path for path in ISAS.iterdir() if path.name not in ("portable", "shared")}
    ]


def _weak_symbols(path: Path) -> list[str]:
    """Weak symbols of an object file, which a linker may merge with those of other files."""
    with path.open("rb") as file:
        tables = [section for section in ELFFile(file).iter_sections() if isinstance(section, SymbolTableSection)]
        return [
            symbol.name
            for table in tables
            for symbol in table.iter_symbols()
            if symbol["st_info"]["bind"] in ("STB_WEAK", "STB_LOOS") and symbol["st_shndx"] != "SHN_UNDEF"
        ]


@pytest.mark.parametrize("build_type", ["Release", "Debug"])
@pytest.mark.parametrize("target", ["host", "armv7", "aarch64"])
def test_objects_for_one_isa_share_nothing(target: str, build_type: str, tmp_path: Path) -> None:
    need("ninja")
    gcc = sharing_compiler() if target == "host" else compiler(target)
    # The symbols are the same without debug information, which takes a quarter of the time.
    options = {"CMAKE_EXPORT_COMPILE_COMMANDS": "ON", "CMAKE_CXX_FLAGS_DEBUG": ""}
    run(*gcc.configure(tmp_path, build_type, **options))
    objects = _objects_for_one_isa(tmp_path)
    assert objects
    run(*gcc.compile(tmp_path, *objects))
    weak = {name: found for name in objects if (found := _weak_symbols(tmp_path / name))}
    assert not weak, f"put these in an unnamed namespace, or do without them: {weak}"
