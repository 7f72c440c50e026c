"""Tests `litebnn doctor` on this machine, and in environments with few packages."""

import _ctypes
import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from litebnn import cli
from litebnn.doctor import BROKEN, MISSING, OK, Finding, packages
from toolchains.targets import ROOT

PACKAGE = ROOT / "converter" / "litebnn"


def findings(capsys: pytest.CaptureFixture[str], code: int = 0) -> dict[str, dict[str, Any]]:
    """Runs `litebnn doctor --json`, checks its exit code, and returns the findings by name."""
    assert cli.main(["doctor", "--json"]) == code
    printed = json.loads(capsys.readouterr().out)
    assert printed["ok"] == (code == 0)
    return {finding["name"]: finding for finding in printed["findings"]}


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("LITEBNN_LIBRARY", "LITEBNN_ISA"):
        monkeypatch.delenv(variable, raising=False)


def test_a_screen_says_what_is_here(library: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    headings = [line for line in lines if not line.startswith(" ")]
    assert headings == ["Python", "Running models", "Extras", "Building", "Emulators", "Tests and tasks"]
    assert any(line.startswith("  ok      Python: 3.") for line in lines)
    assert len(lines) < 70


@pytest.mark.parametrize(("columns", "lines"), [(200, 1), (40, 2)])
def test_the_command_stands_where_the_terminal_has_room(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int, lines: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(
        "litebnn.doctor.examine", lambda: [Finding("S", "this", MISSING, "why", "apt install this-one")]
    )
    assert cli.main(["doctor"]) == 0
    heading, *rest = capsys.readouterr().out.splitlines()
    assert (heading, len(rest)) == ("S", lines)
    assert " ".join(" ".join(rest).split()) == "missing this: why → apt install this-one"


def test_the_library_and_its_isa_are_named(library: None, capsys: pytest.CaptureFixture[str]) -> None:
    found = findings(capsys)
    assert found["library"]["state"] == OK
    assert found["library"]["detail"].endswith("liblitebnn.so")
    isa, _, why = found["ISA"]["detail"].partition(": ")
    assert why.startswith("the best for this CPU, which has ")
    assert isa in why
    assert "portable" in why


def test_what_names_the_isa_is_the_reason(
    library: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LITEBNN_ISA", "portable")
    assert findings(capsys)["ISA"]["detail"].startswith("portable: LITEBNN_ISA names it, of ")
    monkeypatch.setenv("LITEBNN_ISA", "avx1024")
    isa = findings(capsys, 2)["ISA"]
    assert isa["detail"].startswith("LITEBNN_ISA is avx1024, this CPU has ")
    assert (isa["state"], isa["install"]) == (BROKEN, "unset LITEBNN_ISA")


def test_a_missing_library_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("litebnn.runtime.find.LIBRARY_NAME", "libnowhere.so")
    found = findings(capsys)["library"]
    assert (found["state"], found["install"]) == (MISSING, "python3 bootstrap.py build")


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "file too short"), (b"text, not a library" * 100, "invalid ELF header"), (None, "which is no file")],
)
def test_a_library_that_cannot_be_loaded_is_broken(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    content: bytes | None,
    reason: str,
) -> None:
    path = tmp_path / "liblitebnn.so"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv("LITEBNN_LIBRARY", str(path))
    found = findings(capsys, 2)["library"]
    assert (found["state"], found["install"]) == (BROKEN, "unset LITEBNN_LIBRARY")
    assert str(path) in found["detail"]
    assert reason in found["detail"]


def test_another_library_is_broken(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("LITEBNN_LIBRARY", _ctypes.__file__)
    assert "has no litebnn_version" in findings(capsys, 2)["library"]["detail"]


def test_without_a_runtime_it_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("litebnn.runtime.find.RUNTIMES", {"absent": "no_such_package.interpreter"})
    found = findings(capsys)["TensorFlow Lite runtime"]
    assert found["state"] == MISSING
    assert found["install"].endswith("pip install absent")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("raise ImportError('libc.so.6: version `GLIBC_2.99` not found')", "version `GLIBC_2.99` not found"),
        ("import os\nos.abort()", "SIGABRT"),
        ("raise RuntimeError('no AVX')", "RuntimeError: no AVX"),
        ("print('chatter')\nimport sys\nsys.exit(3)", "exit code 3"),
    ],
)
def test_a_runtime_that_cannot_be_loaded_is_broken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, reason: str
) -> None:
    (tmp_path / "ai_edge_litert").mkdir()
    (tmp_path / "ai_edge_litert" / "__init__.py").touch()
    (tmp_path / "ai_edge_litert" / "interpreter.py").write_text(content + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = findings(capsys, 2)["ai-edge-litert"]
    assert found["state"] == BROKEN
    assert reason in found["detail"]
    assert found["install"].endswith("pip install --force-reinstall ai-edge-litert")


class Distribution:
    """Made-up metadata of the package litebnn, which requires only a few packages."""

    requires = (
        "present>=2",
        "absent; extra == 'one'",
        "present>=3; extra == 'two'",
        "absent; python_version < '3' and extra == 'three'",
        "litebnn[one,two]; extra == 'four'",
        "present; extra == 'five'",
    )

    class metadata:
        @staticmethod
        def get_all(name: str) -> list[str]:
            assert name == "Provides-Extra"
            return ["one", "two", "three", "four", "five"]


def version(name: str) -> str:
    if name != "present":
        raise PackageNotFoundError(name)
    return "2.5"


def test_extras_are_those_of_the_metadata(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(packages, "distribution", lambda name: Distribution)
    monkeypatch.setattr(packages, "version", version)
    found = {name: finding for name, finding in findings(capsys).items() if finding["section"] == "Extras"}
    assert {name: finding["detail"] for name, finding in found.items()} == {
        "one": "absent",
        "two": "present>=3, not 2.5",
        "three": "",
        "four": "absent, present>=3, not 2.5",
        "five": "",
    }
    assert [finding["state"] for finding in found.values()] == [MISSING, MISSING, OK, MISSING, OK]
    assert found["four"]["install"].endswith("pip install 'litebnn[four]'")


def test_without_packaging_it_says_how_to_list_the_extras(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "packaging.requirements", None)
    (found,) = (finding for finding in findings(capsys).values() if finding["section"] == "Extras")
    assert (found["name"], found["state"]) == ("extras", MISSING)
    assert found["install"].endswith("pip install packaging")


@pytest.mark.parametrize(
    ("first", "state", "command"), [((3, 0), MISSING, "pip install --no-deps absent"), ((4, 0), OK, "")]
)
def test_a_package_that_pip_installs_apart_is_part_of_its_extra(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    first: tuple[int, int],
    state: str,
    command: str,
) -> None:
    monkeypatch.setattr(packages, "distribution", lambda name: Distribution)
    monkeypatch.setattr(packages, "version", version)
    monkeypatch.setattr(packages, "APART", {"three": ("present", first), "five": ("absent", first)})
    found = findings(capsys)
    assert (found["three"]["state"], found["five"]["state"]) == (OK, state)
    assert found["five"]["install"].endswith(command)


def test_an_extra_without_wheels_for_this_python_names_no_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(packages, "distribution", lambda name: Distribution)
    monkeypatch.setattr(packages, "version", version)
    monkeypatch.setattr(packages, "NEWEST_PYTHON", {"one": (3, 9), "five": (3, 9)})
    found = findings(capsys)
    assert found["one"]["detail"].startswith("no wheels for Python 3.")
    assert (found["one"]["state"], found["one"]["install"]) == (MISSING, "")
    assert found["five"]["state"] == OK


def test_a_package_that_litebnn_needs_is_broken_without(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(packages, "distribution", lambda name: Distribution)
    monkeypatch.setattr(packages, "version", absent)
    found = findings(capsys, 2)
    assert (found["present"]["state"], "library" in found) == (BROKEN, False)
    assert found["present"]["install"].endswith("pip install 'present>=2'")


def bare(package: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs `litebnn doctor` in a Python that has only the standard library."""
    command = [sys.executable, "-S", "-m", "litebnn", "doctor", *options]
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=package.parent)


def test_it_needs_the_standard_library_only() -> None:
    done = bare(PACKAGE, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert (found["litebnn"]["state"], found["litebnn"]["install"]) == (MISSING, "python3 bootstrap.py build")
    assert found["docker"]["section"] == "Extras"
    made = "python3 bootstrap.py --list && .venv/bin/python -m pip install"
    assert (found["docker"]["state"], found["docker"]["install"]) == (MISSING, f"{made} 'litebnn[docker]'")
    assert "c++" in found


def test_an_installed_package_shows_what_is_a_users(tmp_path: Path) -> None:
    package = tmp_path / "litebnn"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "*_test.py"))
    done = bare(package)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in done.stdout.splitlines() if not line.startswith(" ")] == ["Python"]
    assert "-m pip install litebnn" in done.stdout
    assert "bootstrap" not in done.stdout
