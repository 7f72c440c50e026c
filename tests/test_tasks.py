"""Tests tasks.py without the network: a recorder replaces the commands that it runs."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from invoke.collection import Collection
from invoke.context import Context
from invoke.exceptions import Exit
from invoke.parser import Parser

import tasks
from examples.mnist.trainers import TRAINERS
from toolchains.fetch import pytorch
from toolchains.needs import Need
from toolchains.targets import ROOT, read_toml

TASKS = Collection.from_module(tasks)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The extras that are installed in bootstrap.py's environment, each with the name of the environment."""
    found: list[str] = []

    def install(folder: Path, *extras: str) -> None:
        found.append(f"{folder.name}: {','.join(extras)}")

    monkeypatch.setattr(tasks.sys, "prefix", str(tasks.bootstrap.VENV))
    monkeypatch.setattr(tasks.bootstrap, "locked", lambda folder: nullcontext())
    monkeypatch.setattr(tasks.bootstrap, "make_environment", lambda folder: None)
    monkeypatch.setattr(tasks.bootstrap, "install", install)
    monkeypatch.setattr(tasks.bootstrap, "pip_install", lambda folder, *words: found.append(f"pip: {' '.join(words)}"))
    monkeypatch.setattr(tasks.pytorch, "choose", lambda python: ("torch",))
    monkeypatch.setattr(tasks, "needs", dict)
    monkeypatch.setattr(tasks, "WITHOUT_DEPENDENCIES", {})
    monkeypatch.setattr(tasks, "TORCH_VENV", tmp_path / "torch")
    return found


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that tasks run, each of which succeeds."""
    commands: list[list[str]] = []

    def run(command: Sequence[str | Path], **_: object) -> subprocess.CompletedProcess[bytes]:
        commands.append([str(word) for word in command])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(tasks, "subprocess", SimpleNamespace(**{**vars(subprocess), "run": run}))
    return commands


def call(line: str) -> None:
    """Runs a task as `invoke LINE` does."""
    (parsed,) = Parser(contexts=TASKS.to_contexts()).parse_argv(line.split())
    TASKS[parsed.name].body(Context(), **parsed.as_kwargs)


DEEP = ".venv: dev,test,demo,larq,compare,docs,notebook"
TORCH = ["pip: torch", "torch: dev,demo,torch"]


@pytest.mark.parametrize(
    ("line", "extras"),
    [
        ("test", [".venv: dev,test,demo,larq"]),
        ("test -k word --long", [DEEP]),
        ("test -d", [DEEP]),
        ("test --target rpi4", [".venv: dev,test"]),
        ("test --runtimes", [".venv: dev,test"]),
        ("build --target=rpi4", []),
        ("build -t rpi4 -o docker", [".venv: dev,docker"]),
        ("bundle --toolchain zig --target=rpi4", []),  # the toolkit fetches zig by its hash
        ("wheel --target=rpi4 --toolchain=docker", [".venv: dev,docker"]),
        ("deploy --target=rpi4 --host=pi@board --toolchain=docker", [".venv: dev,deploy", ".venv: dev,docker"]),
        ("docker-image", [".venv: dev,docker"]),
        ("bench -r", [".venv: dev,bench"]),
        ("bench --zoo", []),
        ("docs --tags", [".venv: dev,docs"]),
        ("charts", [".venv: dev,bench"]),
        ("photo", [".venv: dev,keras,photo"]),
        ("demo --epochs=3", [".venv: dev,demo,larq"]),
        ("demo --trainer=keras", [".venv: dev,demo,keras"]),
        ("demo --trainer=abacus", [".venv: dev,demo"]),
        ("demo --trainer torch", TORCH),
        ("compare", [*TORCH, ".venv: dev,demo,keras,compare"]),
        ("compare --frameworks=keras", [".venv: dev,demo,keras,compare"]),
        ("compare -f torch", [*TORCH, ".venv: dev,demo,keras,compare"]),
    ],
)
def test_a_task_gets_the_extras_that_it_needs(
    installed: list[str], ran: list[list[str]], line: str, extras: list[str]
) -> None:
    call(line)
    assert [each for each in dict.fromkeys(installed) if each != ".venv: dev,test" or each in extras] == extras
    assert ran


def test_an_environment_of_ones_own_is_left_alone(
    installed: list[str], ran: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tasks.sys, "prefix", str(tmp_path))
    call("test --deep")
    assert installed == []


def test_every_extra_of_a_task_is_one_of_the_project() -> None:
    known = read_toml(ROOT / "pyproject.toml")["project"]["optional-dependencies"]
    assert {*tasks.TESTED, *tasks.TESTED_DEEPLY, *tasks.INSTEAD.values(), *TRAINERS} <= set(known)
    assert set(tasks.WITHOUT_DEPENDENCIES) | set(tasks.INSTEAD) <= set(known)


def test_what_pip_cannot_resolve_is_installed_apart(
    installed: list[str], ran: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "WITHOUT_DEPENDENCIES", {"larq": ["larq==9"]})
    call("demo")
    assert installed == ["pip: --no-deps larq==9", ".venv: dev,demo,larq"]


@pytest.mark.parametrize(
    ("line", "extras", "said"),
    [
        ("demo", "dev,demo,keras", "larq: no wheels for Python 3."),
        ("demo --trainer=keras", "dev,demo,keras", ""),
        ("demo --trainer=larq", "", "the extra larq has no wheels for Python 3."),
        ("compare --frameworks=keras", "", "the extra compare has no wheels for Python 3."),
        ("test --deep", "dev,test,demo,keras,docs,notebook", "its tests are skipped"),
    ],
)
def test_extras_without_wheels_for_a_newer_python_are_named(
    installed: list[str],
    ran: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: str,
    extras: str,
    said: str,
) -> None:
    old = {name: Need(name, "package", "", "", newest_python=(3, 9)) for name in ("larq", "compare")}
    monkeypatch.setattr(tasks, "needs", lambda: old)
    message = ""
    try:
        call(line)
    except Exit as error:
        message = str(error.message)
    assert installed[:1] == ([f".venv: {extras}"] if extras else [])
    printed = capsys.readouterr().out + message
    assert said in printed
    assert said or "no wheels" not in printed


CUDA = {"version": "2.15.0", "requires_dist": ['nvidia-nccl==2; platform_system == "Linux"', "sympy"]}
CPU = {"version": "2.13.0+cpu", "requires_dist": ["sympy"]}


@pytest.mark.parametrize(
    ("found", "own", "fetched", "said"),
    [
        ([CPU, CUDA], "", pytorch.SOURCES[0], "PyTorch 2.13.0+cpu, for CPUs"),
        ([CUDA, CPU], "", pytorch.SOURCES[1], "PyTorch 2.13.0+cpu, for CPUs"),
        ([None, CPU], "", pytorch.SOURCES[1], "PyTorch 2.13.0+cpu, for CPUs"),
        ([CUDA, CUDA], "", ("torch",), "with CUDA (several GB)"),
        ([None, None], "", ("torch",), "with CUDA (several GB)"),
        ([], "torch==2.9.0 --index-url=https://a.b/cu128", ("torch==2.9.0", "--index-url=https://a.b/cu128"), "says"),
    ],
)
def test_pytorch_is_one_for_cpus_where_pip_finds_one_or_the_users(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    found: list[dict[str, object] | None],
    own: str,
    fetched: tuple[str, ...],
    said: str,
) -> None:
    answers = iter(found)

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        metadata = next(answers)
        report = json.dumps({"install": [{"metadata": metadata}]})
        return subprocess.CompletedProcess(command, 0 if metadata else 1, report)

    monkeypatch.setattr(pytorch.sys, "platform", "linux")
    monkeypatch.setattr(pytorch.subprocess, "run", run)
    monkeypatch.setenv(pytorch.VARIABLE, own)
    assert pytorch.choose(Path("python")) == fetched
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(("code", "shown"), [(0, ""), (3, "start-up lines\n")])
def test_what_a_quiet_task_logs_is_shown_only_where_it_fails(
    capfd: pytest.CaptureFixture[str], code: int, shown: str
) -> None:
    logs = f"import sys; print('result'); print('start-up lines', file=sys.stderr); sys.exit({code})"
    with pytest.raises(Exit) if code else nullcontext():
        tasks._quietly("-c", logs)
    assert capfd.readouterr() == ("result\n", shown)


def test_paths_are_from_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: list[list[str]]
) -> None:
    monkeypatch.chdir(tmp_path)
    call("demo --mnist=digits --epochs=3")
    call("runtime --tflite-dir=own")
    call("deploy --target=rpi4 --host=pi@board --identity=key --model=m.tflite")
    words = {word for command in ran for word in command}
    assert {f"--mnist={tmp_path}/digits", f"--tflite-dir={tmp_path}/own", "--epochs=3"} < words
    assert {f"--identity={tmp_path}/key", f"--model={tmp_path}/m.tflite"} < words


@pytest.mark.parametrize(
    ("failing", "signalled", "code"),
    [("mypy", None, 3), ("toolchains.build", None, 3), ("", "toolchains.build", tasks.INTERRUPTED)],
)
def test_tests_start_only_after_lint_and_the_build(
    monkeypatch: pytest.MonkeyPatch, failing: str, signalled: str | None, code: int
) -> None:
    started: list[str] = []

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        started.append(command[2])
        if command[2] == signalled:
            raise KeyboardInterrupt
        return subprocess.CompletedProcess(command, 3 if command[2] == failing else 0)

    monkeypatch.setattr(tasks.subprocess, "run", run)
    with pytest.raises(Exit) as ended:
        tasks.test.body(Context())
    assert ended.value.code == code
    assert {"ruff", "toolchains.build"} <= set(started)
    assert "pytest" not in started


@pytest.mark.deep
def test_a_second_run_can_leave_out_what_passed(tmp_path: Path) -> None:
    source = """
        import os

        def test_passes(): pass
        def test_does_more_in_the_deep_tier(are_deep): pass
        def test_fails_once(): assert "MENDED" in os.environ
    """
    (tmp_path / "test_three.py").write_text(textwrap.dedent(source), encoding="utf-8")

    def run(*options: str, **variables: str) -> str:
        command = [sys.executable, "-m", "pytest", "-p", "conftest", f"--rootdir={tmp_path}", *options, str(tmp_path)]
        environment = os.environ | {"PYTHONPATH": str(ROOT)} | variables
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True).stdout

    assert "1 failed, 2 passed" in run()
    assert "2 passed, 1 deselected" in run("--remaining", "--deep", MENDED="1")


def test_tests_in_the_package_for_keras_are_skipped_without_keras(tmp_path: Path) -> None:
    source = """
        from importlib.machinery import PathFinder

        find = PathFinder.find_spec
        PathFinder.find_spec = lambda name, *rest: None if name.partition(".")[0] == "keras" else find(name, *rest)
    """
    (tmp_path / "without_keras.py").write_text(textwrap.dedent(source), encoding="utf-8")
    options = ["-p", "without_keras", "-p", "no:cacheprovider", "converter/litebnn/keras"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert "keras is missing: " in done.stdout
    assert " error" not in done.stdout
