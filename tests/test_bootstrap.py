"""Tests bootstrap.py without the network: a recorder replaces the commands that it runs."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import bootstrap
from toolchains.targets import ROOT, read_toml

Commands = list[list[str]]


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """The commands that bootstrap.py runs where its environments exist. The task's exit code is 3."""
    ran: Commands = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append([str(word) for word in command])
        return subprocess.CompletedProcess(command, 3 if "invoke" in command else 0)

    for name in ("VENV", "RELEASE_VENV"):
        monkeypatch.setattr(bootstrap, name, tmp_path / name)
        python = bootstrap.python_of(tmp_path / name)
        python.parent.mkdir(parents=True)
        python.touch()
    monkeypatch.setattr(bootstrap.subprocess, "run", run)
    return ran


def installs(commands: Commands) -> Commands:
    return [command for command in commands if "install" in command]


def test_a_task_runs_with_its_arguments_and_exit_code(commands: Commands) -> None:
    assert bootstrap.main(["build", "--target=rpi4"]) == 3
    assert commands[-1][1:] == ["-m", "invoke", "--search-root", str(ROOT), "build", "--target=rpi4"]
    (command,) = installs(commands)
    assert command[-1] == f"{ROOT}[dev]"
    # The newest release of a package may have no wheel for an older Python.
    assert "--prefer-binary" in command
    commands.clear()
    bootstrap.main(["build"])
    assert installs(commands) == []


@pytest.mark.parametrize("changed", ["pyproject.toml", "release.txt"])
def test_new_requirements_are_installed(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    task = "release" if changed == "release.txt" else "build"
    bootstrap.main([task])
    commands.clear()
    (tmp_path / changed).write_text("[project]\n")
    monkeypatch.setattr(bootstrap, *(("RELEASE_LOCK", tmp_path / changed) if task == "release" else ("ROOT", tmp_path)))
    bootstrap.main([task])
    assert installs(commands)


def test_a_release_is_built_by_packages_with_hashes(commands: Commands) -> None:
    bootstrap.main(["release", "--check"])
    first, second = installs(commands)
    assert {"--require-hashes", "--only-binary=:all:", str(bootstrap.RELEASE_LOCK)} <= set(first)
    assert {"--no-deps", "--no-build-isolation", "--editable", str(ROOT)} <= set(second)
    assert {command[0] for command in commands} == {str(bootstrap.python_of(bootstrap.RELEASE_VENV))}


def test_an_older_python_is_refused_in_a_line() -> None:
    """Old Pythons must be able to parse all of bootstrap.py, and to run it up to the check of Python's version."""
    source = Path(bootstrap.__file__).read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 6))
    above, found, below = source.partition("if sys.version_info <")
    code = f"__file__ = 'bootstrap.py'\n{above}sys.version_info = (3, 9, 2)\n{found}{below}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("bootstrap: Python 3.10 or newer is needed, this is ")
    assert done.stderr.count("\n") == 1
    assert read_toml(ROOT / "pyproject.toml")["project"]["requires-python"] == ">=3.10"


@pytest.mark.parametrize("code", [0, 1])
def test_what_pip_says_is_shown_only_where_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], code: int
) -> None:
    said = f"import sys; print('WARNING: chatter'); print('ERROR: no such thing', file=sys.stderr); sys.exit({code})"
    monkeypatch.setattr(bootstrap, "VENV", tmp_path)
    monkeypatch.setattr(bootstrap, "runs", lambda folder: True)
    monkeypatch.setattr(bootstrap, "python_of", lambda folder: sys.executable)
    monkeypatch.setattr(bootstrap, "pip", lambda folder, *arguments: [sys.executable, "-c", said])
    assert bootstrap.main(["--version"]) == code
    printed = capfd.readouterr()
    assert ("WARNING: chatter" in printed.out, "ERROR: no such thing" in printed.out) == (bool(code), bool(code))
    assert printed.err == ""


def test_bytecode_is_kept_even_where_python_shall_write_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    (tmp_path / "imported.py").touch()
    variables = bootstrap.task_variables(tmp_path / "venv")
    subprocess.run([sys.executable, "-c", "import imported"], cwd=tmp_path, env=variables, check=True)
    assert list((tmp_path / "venv").rglob("imported.*.pyc"))
    assert not list(tmp_path.glob("__pycache__"))


def raising(error: BaseException) -> object:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("name", "error", "code", "said"),
    [
        ("subprocess.run", KeyboardInterrupt(), 130, "interrupted"),
        (
            "venv.EnvBuilder.create",
            subprocess.CalledProcessError(1, ["python", "-m", "ensurepip"]),
            1,
            "cannot make the environment: this Python cannot install pip (on Debian: apt install python3-venv)",
        ),
    ],
)
def test_a_failure_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    error: BaseException,
    code: int,
    said: str,
) -> None:
    monkeypatch.setattr(f"bootstrap.{name}", raising(error))
    monkeypatch.setattr(bootstrap, "VENV", tmp_path)
    monkeypatch.setattr(bootstrap, "runs", lambda folder: False)
    if code == 130:
        monkeypatch.setattr(bootstrap, "make_environment", lambda folder: None)
        monkeypatch.setattr(bootstrap, "install", lambda *_: None)
    assert bootstrap.main(["build"]) == code
    assert capsys.readouterr().out.splitlines()[-1] == f"bootstrap: {said}"


@pytest.mark.parametrize(("name", "asks"), [("VENV", True), ("RELEASE_VENV", False)])
@pytest.mark.parametrize("code", [0, 1])
def test_an_environment_takes_a_newer_pip_if_there_is_one(
    name: str, asks: bool, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: Commands = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        ran.append(command)
        return subprocess.CompletedProcess(command, code)

    monkeypatch.setattr(bootstrap, name, tmp_path)
    monkeypatch.setattr(bootstrap.venv.EnvBuilder, "create", lambda builder, folder: None)
    monkeypatch.setattr(bootstrap.subprocess, "run", run)
    bootstrap.make_environment(tmp_path)
    assert [command[-1].partition(">")[0] for command in ran] == ["pip"] * asks


def test_a_second_bootstrap_waits_for_the_first(tmp_path: Path) -> None:
    folder = tmp_path / ".venv"
    second = (
        f"import bootstrap, pathlib; bootstrap.VENV = pathlib.Path({str(folder)!r})\n"
        "bootstrap.make_environment = lambda folder: bootstrap.say('making')\n"
        "bootstrap.install = lambda folder, *extras: bootstrap.say('installing')\n"
        "bootstrap.python_of = lambda folder: 'true'\n"
        "raise SystemExit(bootstrap.main(['build']))"
    )
    with bootstrap.locked(folder):
        process = subprocess.Popen([sys.executable, "-c", second], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("bootstrap: waiting for another bootstrap")
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
    rest, _ = process.communicate()
    assert process.returncode == 0
    assert rest.splitlines() == ["bootstrap: making", "bootstrap: installing"]


def test_without_a_task_it_shows_its_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert bootstrap.main([]) == 1
    assert "Usage: python3 bootstrap.py TASK" in capsys.readouterr().out


def test_it_needs_the_standard_library_only() -> None:
    code = "import sys, bootstrap; sys.exit(any('site-packages' in str(m) for m in sys.modules.values()))"
    assert subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT).returncode == 0


def test_the_doctor_makes_no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Commands = []

    def run(command: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(command, 2)

    monkeypatch.setattr(bootstrap, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(bootstrap.subprocess, "run", run)
    assert bootstrap.main(["doctor", "--json"]) == 2
    assert asked == [[sys.executable, "-m", "litebnn", "doctor", "--json"]]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.deep
def test_the_doctor_looks_at_the_environment_that_is_there() -> None:
    words = [sys.executable, "bootstrap.py", "doctor", "--json"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    found = json.loads(done.stdout)["findings"]
    assert found[0]["name"] == "Python"
    used = bootstrap.VENV if bootstrap.runs(bootstrap.VENV) else Path(sys.prefix)
    assert str(used) in found[0]["detail"]
