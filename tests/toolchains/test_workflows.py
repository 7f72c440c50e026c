"""Tests that the files for CI on GitHub pass a linter, and call only the project's own commands."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.needs import need
from toolchains.probes import find_program
from toolchains.targets import ROOT

FOLDER = ROOT / ".github" / "workflows"
COMMANDS = {"test.yml": "test", "deep.yml": "test --deep", "release.yml": "release --check"}
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    need("zizmor")
    command = [find_program("zizmor"), "--offline", "--pedantic", "--quiet", folder]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_linter_finds_nothing() -> None:
    run = lint(FOLDER)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (r"@[0-9a-f]{40} # (v\d+)\S*", r"@\1"),
        (r"contents: read", "contents: write"),
        (r"runs-on:", "run-on:"),
        (r"\n +with:\n +persist-credentials: false", ""),
    ],
)
def test_the_linter_finds_mistakes(right: str, wrong: str, tmp_path: Path) -> None:
    spoiled = re.sub(right, wrong, TEXTS["test.yml"])
    assert spoiled != TEXTS["test.yml"]
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    (tmp_path / ".github" / "workflows" / "test.yml").write_text(spoiled)
    assert lint(tmp_path).returncode != 0


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_file_runs_one_command_of_the_project(name: str) -> None:
    assert re.findall(r"\brun: (.+)$", TEXTS[name], re.MULTILINE) == [f"python bootstrap.py {COMMANDS[name]}"]


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_actions_are_pinned_by_the_hash_of_a_commit(name: str) -> None:
    used = re.findall(r"uses: (.+)$", TEXTS[name], re.MULTILINE)
    assert len(used) >= 2
    assert [line for line in used if not re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


def test_every_command_and_every_system_is_there() -> None:
    assert set(TEXTS) == set(COMMANDS)
    for name in ("test.yml", "deep.yml"):
        (systems,) = re.findall(r"system: \[(.+)\]", TEXTS[name])
        assert [system.partition("-")[0] for system in systems.split(", ")] == ["ubuntu", "ubuntu", "macos", "windows"]
        assert "-arm" in systems
