"""Tests the structure of the library for macOS. The library cannot run on this machine."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.needs import imported, need
from toolchains.binaries import EXPORTS, exported_names, hide, sign
from toolchains.build import build
from toolchains.compilers import find_clang_tool
from toolchains.targets import find_target

TARGET = "macos-arm64"


@pytest.mark.deep
def test_the_library_is_one_that_macos_14_takes() -> None:
    need("pypi", "cross")
    lief: Any = imported("lief", "lief")
    path = build(TARGET, "zig", programs=False)
    library = lief.parse(str(path))
    assert exported_names(path) == EXPORTS
    assert library.build_version.minos == [14, 0, 0]
    assert f"macosx_{library.build_version.minos[0]}_" in find_target(TARGET).wheel
    name, *others = [used.name for used in library.libraries]
    assert (name, others) == ("@rpath/liblitebnn.dylib", ["/usr/lib/libSystem.B.dylib"])
    assert is_signed(path)


def is_signed(path: Path) -> bool:
    """True if the file has an ad-hoc signature with the right hashes."""
    content = bytearray(path.read_bytes())
    sign(content)
    return b"\xfa\xde\x0c\x02" in content and bytes(content) == path.read_bytes()


SOURCE = """
extern "C" int answer() { return 42; }
extern "C" int answers() { return 43; }
extern "C" int other() { return 0; }
extern "C" int __dso_handle_of_mine() { return 1; }
"""


@pytest.mark.deep
@pytest.mark.needs("clang", "lld")
def test_names_are_taken_out_of_the_exports(tmp_path: Path) -> None:
    lief: Any = imported("lief", "lief")
    source, code, path = tmp_path / "a.cc", tmp_path / "a.o", tmp_path / "liba.dylib"
    source.write_text(SOURCE)
    subprocess.run([find_clang_tool("clang++"), "--target=arm64-apple-macos14", "-c", "-o", code, source], check=True)
    linker = [find_clang_tool("ld64.lld"), "-dylib", "-arch", "arm64", "-platform_version", "macos", "14.0", "14.0"]
    subprocess.run([*linker, "-undefined", "dynamic_lookup", "-o", path, code], check=True)
    # The linker has signed the library. The function is_signed must accept the linker's signature, which shows that it
    # computes the hashes as the linker does.
    assert is_signed(path)
    before = lief.parse(str(path))
    addresses = {export.symbol.name: export.address for export in before.dyld_exports_trie.exports}
    assert [*sorted(addresses)] == ["___dso_handle_of_mine", "_answer", "_answers", "_other"]
    size = path.stat().st_size
    hide(path, ("___dso_handle_of_mine", "_other"))
    library = lief.parse(str(path))
    assert {export.symbol.name: export.address for export in library.dyld_exports_trie.exports} == {
        name: addresses[name] for name in ("_answer", "_answers")
    }
    assert sorted(symbol.name for symbol in library.exported_symbols) == ["_answer", "_answers"]
    assert path.stat().st_size == size
    assert is_signed(path)
