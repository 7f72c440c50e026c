"""bootstrap.py, without the network: pip is replaced by a recorder."""

import subprocess
import sys
from pathlib import Path

import pytest

import bootstrap


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that bootstrap ran, with .venv in a folder that exists already."""
    monkeypatch.setattr(bootstrap, "VENV", tmp_path)
    monkeypatch.setattr(bootstrap, "PYTHON", Path(sys.executable))
    ran: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        ran.append([str(word) for word in command])
        return subprocess.CompletedProcess(command, 3 if "invoke" in command else 0)

    monkeypatch.setattr(bootstrap.subprocess, "run", run)
    return ran


def installs(commands: list[list[str]]) -> list[str]:
    return [command[-1] for command in commands if "install" in command]


def test_a_task_runs_with_its_arguments_and_exit_code(commands: list[list[str]]) -> None:
    assert bootstrap.main(["build", "--target=rpi4"]) == 3
    assert commands[-1][1:] == ["-m", "invoke", "build", "--target=rpi4"]
    assert installs(commands)[0].endswith("[dev]")


def test_a_second_run_installs_nothing(commands: list[list[str]]) -> None:
    bootstrap.main(["demo"])
    assert installs(commands)[0].endswith("[dev,demo]")
    commands.clear()
    bootstrap.main(["demo"])
    bootstrap.main(["build"])
    assert installs(commands) == []


def test_new_dependencies_are_installed(
    commands: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bootstrap.main(["demo"])
    commands.clear()
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    bootstrap.main(["demo"])
    assert installs(commands)[0].endswith("[dev,demo]")


def test_without_a_task_it_shows_its_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert bootstrap.main([]) == 1
    assert "Usage: python3 bootstrap.py TASK" in capsys.readouterr().out


def test_it_needs_the_standard_library_only() -> None:
    code = "import sys, bootstrap; sys.exit(any('site-packages' in str(m) for m in sys.modules.values()))"
    assert subprocess.run([sys.executable, "-S", "-c", code], cwd=Path(bootstrap.__file__).parent).returncode == 0
