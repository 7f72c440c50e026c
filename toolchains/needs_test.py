"""Tests of needs.py, the table of requirements."""

import subprocess
import sys
from pathlib import Path

import pytest

from toolchains.needs import Need, installation, missing, needs, with_pip
from toolchains.probes import versions
from toolchains.targets import ROOT, load_targets, read_toml


@pytest.mark.parametrize(
    ("programs", "modules", "files", "is_found"),
    [
        (("no-such-program", "python3"), (), (), True),
        (("no-such-program",), (), (), False),
        ((), ("json", "xml.dom"), (), True),
        ((), ("json", "no_such"), (), False),
        ((), ("no_such.module",), (), False),
        ((), (), (ROOT,), True),
        ((), (), (ROOT, ROOT / "no"), False),
    ],
)
def test_one_program_and_all_modules_and_files_are_needed(
    programs: tuple[str, ...], modules: tuple[str, ...], files: tuple[Path, ...], is_found: bool
) -> None:
    assert Need("a", "", "", "", programs=programs, modules=modules, files=files).is_found() == is_found


def test_a_program_without_a_path_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "valgrind").write_text("no program\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert needs()["valgrind"].missing() == "valgrind is missing: apt install valgrind"


def test_a_missing_package_is_installed_for_this_python() -> None:
    row = Need("a", "package", "", "pip install a && pip install --no-deps b", modules=("no_such",))
    python = with_pip("pip install ").removesuffix(" -m pip install ")
    assert Path.cwd() / python == Path(sys.executable)
    assert row.missing() == f"a is missing: {python} -m pip install a && {python} -m pip install --no-deps b"


def test_debians_versions_are_found() -> None:
    assert "clang++-19" in versions("clang++")


@pytest.mark.parametrize(
    ("version", "said"),
    [((3, 11, 2), "apt install a"), ((3, 12, 0), "no wheels for Python 3.12, only up to 3.11")],
)
def test_a_python_without_wheels_is_told_so(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...], said: str
) -> None:
    monkeypatch.setattr("toolchains.needs.sys.version_info", version)
    row = Need("a", "package", "", "apt install a", modules=("no_such",), newest_python=(3, 11))
    assert row.missing() == f"a is missing: {said}"
    monkeypatch.setattr("toolchains.needs.needs", lambda: {"a": row})
    monkeypatch.setattr("toolchains.needs.missing", lambda name: row.missing())
    assert installation(["a"]) == (["apt install a"] if said == "apt install a" else [])


@pytest.mark.parametrize("name", needs())
def test_a_row_says_what_it_is_for_and_what_installs_it(name: str) -> None:
    need = needs()[name]
    assert need.kind in ("program", "package", "file", "service", "network")
    assert need.purpose
    assert "probes." not in need.purpose
    assert need.install
    assert need.programs or need.modules or need.files or need.answers


def test_targets_compilers_and_emulators_are_those_of_their_table() -> None:
    for target in load_targets().values():
        assert not target.triple or "gcc" not in target.toolchains or f"{target.triple}-g++" in needs()
        assert not target.emulator or target.emulator in needs()


def test_extras_are_those_of_the_project() -> None:
    extras = read_toml(ROOT / "pyproject.toml")["project"]["optional-dependencies"]
    named = {need.install.partition("[")[2].partition("]")[0] for need in needs().values() if "[" in need.install}
    assert named <= set(extras)
    assert set(extras) - named <= {"dev"}


def test_what_is_missing_is_installed_by_one_command_an_installer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolchains.needs.missing", lambda name: "" if name == "zsh" else "missing")
    wanted = ["apt install valgrind clang-19 libclang-rt-19-dev llvm-19", "pip install 'litebnn[docs]'"]
    assert installation(["valgrind", "zsh", "clang", "llvm", "docs"]) == wanted
    engine = needs()["docker-engine"].install
    assert installation(["docker-engine", "valgrind"]) == [engine, "apt install valgrind"]
    assert missing("valgrind") in ("", "valgrind is missing: apt install valgrind")


def test_it_needs_the_standard_library_only() -> None:
    code = "import sys; from toolchains.needs import needs; needs(); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT).returncode == 0
