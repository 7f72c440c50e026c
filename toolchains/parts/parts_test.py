import re
from pathlib import Path

import pytest

from tests.needs import need
from toolchains import parts as table
from toolchains.compilers import ziglang_program
from toolchains.parts import load_parts, notices, parts_of
from toolchains.runtime_library import LITERT_VERSION
from toolchains.targets import ROOT, ToolkitError, find_target, read_toml

PARTS = {part.name: part for part in load_parts()}


def test_what_is_inside_depends_on_product_system_and_toolchain() -> None:
    linux, windows, mac = map(find_target, ("rpi4", "windows-x86_64", "macos-arm64"))
    of_zig = {"libc++", "libc++abi", "zig-compiler-rt"}
    assert {part.name for part in parts_of("wheel", linux, "zig")} == {*of_zig, "libunwind", *OF_THE_PACKAGE}
    assert {part.name for part in parts_of("wheel", linux, "gcc")} == OF_THE_PACKAGE
    assert {part.name for part in parts_of("wheel", mac, "zig")} == of_zig | OF_THE_PACKAGE
    assert {part.name for part in parts_of("bundle", windows, "clang")} == {"mingw-w64", "ai-edge-litert", "stb_image"}


OF_THE_PACKAGE = {"dagre", "panzoom", "wordnet"}


def test_each_license_is_there_once() -> None:
    text = notices(parts_of("bundle", find_target("rpi4"), "zig"))
    assert text.count("The LLVM Project is under the Apache License v2.0 with LLVM Exceptions") == 1
    assert "libc++ 20.1.2, libc++abi 20.1.2, libunwind 20.1.2\n===" in text


def test_wheels_have_each_notice() -> None:
    patterns = read_toml(ROOT / "pyproject.toml")["project"]["license-files"]
    files = {path.relative_to(ROOT).as_posix() for pattern in patterns for path in ROOT.glob(pattern)}
    inside = {part.notice for part in PARTS.values() if "wheel" in part.products}
    assert files == {"LICENSE", *inside}


def test_versions_are_those_that_are_inside() -> None:
    vendored = (ROOT / "converter/litebnn/report/page/vendor/README.md").read_text(encoding="utf-8")
    for name in ("dagre", "panzoom"):
        assert re.search(rf"/{name}\]\(\S+\) {re.escape(PARTS[name].version)},", vendored)
    assert PARTS["ai-edge-litert"].version == LITERT_VERSION


def test_zigs_parts_are_those_of_the_installed_zig() -> None:
    need("cross")
    zig = Path(ziglang_program()).parent
    for part, file in {"libc++": "lib/libcxx/LICENSE.TXT", "zig-compiler-rt": "LICENSE"}.items():
        assert (ROOT / PARTS[part].notice).read_text() == (zig / file).read_text()
    assert (ROOT / PARTS["mingw-w64"].notice).read_text() == (zig / "lib/libc/mingw/COPYING").read_text()
    found = re.search(r"_LIBCPP_VERSION (\d\d)(\d\d)", (zig / "lib/libcxx/include/__config").read_text())
    assert found is not None
    assert PARTS["libc++"].version.startswith(f"{found[1]}.{int(found[2])}.")


def test_a_mistake_in_the_table_names_the_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "TABLE", tmp_path / "parts.toml")
    table.TABLE.write_text('[a]\nversion = "1"\nlicence = "MIT"\nurl = ""\nproducts = []\n')
    with pytest.raises(ToolkitError, match=r"parts\.toml, row a: .*'licence'"):
        load_parts()
