from datetime import date
from pathlib import Path

import pytest

from toolchains.build import programs_of
from toolchains.deb import packages
from toolchains.deb.changelog import Entry
from toolchains.deb.packages import DEBIAN, debian_changelog, debian_target, make_tree
from toolchains.parts import parts_of
from toolchains.targets import VERSION, ToolkitError, find_target, load_targets

ENTRY = Entry(VERSION, date(2026, 11, 23), {"Added": ["A thing."], "Fixed": ["A long line " * 8]})


def paragraphs(text: str) -> list[dict[str, str]]:
    """The paragraphs of a control file, without continuation lines."""
    return [
        {key: value.strip() for key, _, value in (line.partition(":") for line in part.splitlines() if line[0] != " ")}
        for part in text.strip().split("\n\n")
    ]


def test_boards_of_a_family_have_one_package() -> None:
    found = {name: debian_target(name).debian for name in ("rpi4", "rpi5", "aarch64", "rpi3", "x86_64", "riscv64")}
    assert found == {
        **dict.fromkeys(("rpi4", "rpi5", "aarch64"), "arm64"),
        "rpi3": "armhf",
        "x86_64": "amd64",
        "riscv64": "riscv64",
    }
    assert debian_target("rpi5").name == "aarch64"


def test_every_linux_target_has_an_architecture_of_debians() -> None:
    linux = [row for row in load_targets().values() if row.system == "Linux" and row.triple and not row.is_bare_metal]
    assert linux
    assert all(debian_target(row.name).debian for row in linux)


def test_this_machine_is_the_family_of_its_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "debian_architecture", lambda: "armhf")
    assert debian_target("host").name == "armv7"
    monkeypatch.setattr(packages, "debian_architecture", lambda: "")
    with pytest.raises(ToolkitError, match="no Debian packages for host"):
        debian_target("host")


@pytest.mark.parametrize("name", ["windows-x86_64", "macos-arm64", "android-arm64"])
def test_other_systems_are_refused(name: str) -> None:
    with pytest.raises(ToolkitError, match=f"no Debian packages for {name}"):
        debian_target(name)


def test_the_changelog_is_in_debians_form() -> None:
    text = debian_changelog(ENTRY)
    assert text.startswith(f"litebnn ({VERSION}) unstable; urgency=medium\n\n  * Added: A thing.\n  * Fixed: ")
    assert text.endswith(">  Mon, 23 Nov 2026 00:00:00 +0000\n")
    assert max(map(len, text.splitlines()[:-1])) <= 80
    with pytest.raises(ToolkitError, match=f"expected an entry of {VERSION} first, found 9.9"):
        debian_changelog(ENTRY._replace(version="9.9"))


def test_the_tree_has_everything_that_is_built(tmp_path: Path) -> None:
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    (runtime / "libLiteRt.so").touch()
    tree = make_tree(tmp_path / "tree", runtime)
    assert (tree / "debian" / "rules").stat().st_mode & 0o111
    assert (tree / "debian" / "changelog").read_text().startswith(f"litebnn ({VERSION}) ")
    assert not list(tree.rglob("__pycache__"))
    lines = [line.split() for file in (tree / "debian").glob("*.install") for line in file.read_text().splitlines()]
    # The test checks only files of the source tree. The packages' other files are made later: CMake installs those in
    # usr/ and compiles those in build/.
    sources = [words[0] for words in lines if not words[0].startswith(("usr/", "build/"))]
    assert all((tree / source).exists() for source in sources)
    examples = (tree / "debian" / "litebnn-tools.examples").read_text().split()
    assert examples
    assert all((tree / example).is_file() for example in examples)
    pages = {page.stem for page in (tree / "debian").glob("*.1")}
    # Debian packages leave out litebnn-board-benchmark, because only litebnn's bundles have the models that it runs.
    assert pages == {*programs_of(find_target("aarch64"))} - {"litebnn-board-benchmark"}


def test_packages_and_their_files_agree() -> None:
    source, *binaries = paragraphs((DEBIAN / "control").read_text())
    assert source["Source"] == "litebnn"
    names = {each["Package"] for each in binaries}
    assert names == {"liblitebnn1", "liblitebnn-dev", "litebnn-tools"}
    assert {file.stem for file in DEBIAN.glob("*.*")} == names
    # The programs of litebnn-tools need LiteRT, so only architectures with a wheel of LiteRT have this package.
    tools = next(each for each in binaries if each["Package"] == "litebnn-tools")
    with_litert = {
        row.debian for row in load_targets().values() if row.debian and row.processor in packages.LITERT_WHEELS
    }
    assert {*tools["Architecture"].split()} == with_litert


def test_the_copyright_names_others_code() -> None:
    text = (DEBIAN / "copyright").read_text()
    for part in parts_of("deb", find_target("aarch64"), "gcc"):
        assert part.name in text
