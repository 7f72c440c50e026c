"""bootstrap.py and tasks.py, without the network: what they run is replaced by a recorder."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from invoke.collection import Collection
from invoke.context import Context
from invoke.exceptions import Exit

import bootstrap
import tasks
from examples.mnist.trainers import TRAINERS
from toolchains.targets import ROOT, read_toml


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that bootstrap ran, with environments that exist already; pip finds the PyTorch in `FOUND`."""
    for name, folder in (("VENV", tmp_path / "venv"), ("TORCH_VENV", tmp_path / "venv-torch")):
        monkeypatch.setattr(bootstrap, name, folder)
        python = bootstrap.python_of(folder)
        python.parent.mkdir(parents=True)
        python.touch()
    monkeypatch.delenv(bootstrap.TORCH_VARIABLE, raising=False)
    ran: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append([str(word) for word in command])
        if "--dry-run" in ran[-1]:
            found = FOUND.get(ran[-1][-1])
            report = json.dumps({"install": [{"metadata": found}]})
            return subprocess.CompletedProcess(command, 0 if found else 1, report, "")
        return subprocess.CompletedProcess(command, 3 if "invoke" in command else 0)

    monkeypatch.setattr(bootstrap.subprocess, "run", run)
    return ran


def installs(commands: list[list[str]]) -> list[str]:
    return [command[-1] for command in commands if "install" in command and "--dry-run" not in command]


def test_a_task_runs_with_its_arguments_and_exit_code(commands: list[list[str]]) -> None:
    assert bootstrap.main(["build", "--target=rpi4"]) == 3
    root = str(Path(bootstrap.__file__).parent)
    assert commands[-1][1:] == ["-m", "invoke", "--search-root", root, "build", "--target=rpi4"]
    assert installs(commands)[0].endswith("[dev]")


def test_a_second_run_installs_nothing(commands: list[list[str]]) -> None:
    bootstrap.main(["demo"])
    assert installs(commands)[0].endswith("[dev,demo,larq]")
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
    assert installs(commands)[0].endswith("[dev,demo,larq]")


@pytest.mark.parametrize(
    ("arguments", "extras"),
    [
        ("test", "dev,demo,larq,compare,docs,notebook,test"),
        ("test -k word --long", "dev,demo,larq,compare,docs,notebook,test"),
        ("test --target=host", "dev,demo,larq,compare,docs,notebook,test"),
        ("test --target=rpi4", "dev,test"),
        ("test --target rpi4", "dev,test"),
        ("test -t rpi4", "dev,test"),
        ("test --runtimes", "dev,test"),
        ("build --target=rpi4", "dev"),
        ("docs --tags", "dev,docs"),
        ("charts", "dev,compare"),
        ("demo --epochs=3", "dev,demo,larq"),
        ("demo --trainer=keras", "dev,demo,keras"),
        ("demo --trainer=abacus", "dev,demo,larq"),
        ("compare --frameworks=keras", "dev,demo,keras,compare"),
    ],
)
def test_a_task_gets_the_extras_that_it_needs(commands: list[list[str]], arguments: str, extras: str) -> None:
    bootstrap.main(arguments.split())
    assert installs(commands)[0].endswith(f"[{extras}]")


@pytest.mark.parametrize(
    ("arguments", "extras"),
    [
        ("compare", ["dev,demo,torch", "dev,demo,keras,compare"]),
        ("compare --frameworks=keras", ["dev,demo,keras,compare"]),
        ("compare -f torch", ["dev,demo,torch", "dev,demo,keras,compare"]),
    ],
)
def test_comparing_takes_an_environment_for_each_framework_and_runs_in_the_last(
    commands: list[list[str]], tmp_path: Path, arguments: str, extras: list[str]
) -> None:
    bootstrap.main(arguments.split())
    installed = [each for each in installs(commands) if each.endswith("]")]
    assert [each.partition("[")[2].rstrip("]") for each in installed] == extras
    assert commands[-1][0] == str(bootstrap.python_of(tmp_path / "venv"))


CUDA = {"version": "2.15.0", "requires_dist": ['nvidia-nccl==2; platform_system == "Linux"', "sympy"]}
CPU = {"version": "2.13.0+cpu", "requires_dist": ["sympy"]}
FOUND: dict[str, dict[str, object]] = {}


@pytest.mark.parametrize(
    ("found", "fetched", "said"),
    [
        ([CPU, CUDA], bootstrap.TORCH_SOURCES[0], "PyTorch 2.13.0+cpu, for CPUs"),
        ([CUDA, CPU], bootstrap.TORCH_SOURCES[1], "PyTorch 2.13.0+cpu, for CPUs"),
        ([None, CPU], bootstrap.TORCH_SOURCES[1], "PyTorch 2.13.0+cpu, for CPUs"),
        ([CUDA, CUDA], ("torch",), "with CUDA (several GB)"),
        ([None, None], ("torch",), "with CUDA (several GB)"),
    ],
)
def test_the_torch_environment_gets_a_pytorch_for_cpus_where_pip_finds_one(
    commands: list[list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    found: list[dict[str, object] | None],
    fetched: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.setattr(bootstrap.sys, "platform", "linux")
    for source, metadata in zip(bootstrap.TORCH_SOURCES, found, strict=True):
        monkeypatch.setitem(FOUND, source[-1], metadata)
    bootstrap.main(["demo", "--trainer", "torch"])
    first, second = [command for command in commands if "install" in command and "--dry-run" not in command]
    assert tuple(first[-len(fetched) :]) == fetched
    assert second[-1].endswith("[dev,demo,torch]")
    assert {command[0] for command in commands} == {str(bootstrap.python_of(tmp_path / "venv-torch"))}
    assert said in capsys.readouterr().out


def test_a_pytorch_of_ones_own_choice_is_fetched(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(bootstrap.TORCH_VARIABLE, "torch==2.9.0 --index-url=https://example.com/cu128")
    bootstrap.main(["demo", "--trainer=torch"])
    assert installs(commands)[0] == "--index-url=https://example.com/cu128"
    assert not any("--dry-run" in command for command in commands)
    assert bootstrap.TORCH_VARIABLE in capsys.readouterr().out


def test_tasks_and_extras_have_the_names_that_bootstrap_gives_them() -> None:
    project = read_toml(ROOT / "pyproject.toml")["project"]
    known = project["optional-dependencies"]
    assert set(bootstrap.EXTRAS) <= set(Collection.from_module(tasks).task_names)
    assert {extra for needed in bootstrap.EXTRAS.values() for extra in needed} <= set(known)
    assert set(TRAINERS) <= set(bootstrap.TRAINERS) <= set(known)
    assert bootstrap.TRAINERS[0] == TRAINERS[0]
    for extra, requirements in bootstrap.WITHOUT_DEPENDENCIES.items():
        assert set(requirements) <= {text.partition(";")[0].strip() for text in known[extra]}
    assert f">={'.'.join(map(str, bootstrap.OLDEST_PYTHON))}" == project["requires-python"]


def test_an_interrupted_run_ends_quietly(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bootstrap.subprocess, "run", interrupted)
    assert bootstrap.main(["demo"]) == 130
    assert capsys.readouterr().out.splitlines()[-1] == "bootstrap: interrupted"


def test_a_python_without_venv_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def create(builder: object, folder: Path) -> None:
        raise subprocess.CalledProcessError(1, ["python", "-m", "ensurepip"])

    monkeypatch.setattr(bootstrap.venv.EnvBuilder, "create", create)
    monkeypatch.setattr(bootstrap, "VENV", tmp_path / ".venv")
    assert bootstrap.main(["build"]) == 1
    message = capsys.readouterr().out.splitlines()[-1]
    assert message.startswith("bootstrap: cannot make the environment: ")
    assert message.endswith("this Python cannot install pip (on Debian: apt install python3-venv)")


def test_a_second_bootstrap_waits_for_the_first(tmp_path: Path) -> None:
    folder = tmp_path / ".venv"
    second = (
        f"import bootstrap, pathlib; bootstrap.VENV = pathlib.Path({str(folder)!r})\n"
        "bootstrap.make_environment = lambda folder: bootstrap.say('making')\n"
        "bootstrap.install = lambda folder, extras: bootstrap.say('installing')\n"
        "bootstrap.python_of = lambda folder: 'true'\n"
        "raise SystemExit(bootstrap.main(['build']))"
    )
    with bootstrap.locked(folder):
        words = [sys.executable, "-c", second]
        process = subprocess.Popen(words, cwd=Path(bootstrap.__file__).parent, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("bootstrap: waiting for another bootstrap")
        # It goes on only once the lock is free.
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
    rest, _ = process.communicate()
    assert process.returncode == 0
    assert rest.splitlines() == ["bootstrap: making", "bootstrap: installing"]


def test_paths_are_from_where_the_user_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        ran.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(tasks.subprocess, "run", run)
    context = Context()
    tasks.demo.body(context, mnist="digits", epochs="3")
    tasks.runtime.body(context, tflite_dir="own")
    tasks.deploy.body(context, "rpi4", "pi@board", identity="key", model="m.tflite")
    words = [word for command in ran for word in command]
    assert {f"--mnist={tmp_path}/digits", f"--tflite-dir={tmp_path}/own", "--epochs=3"} < set(words)
    assert {f"--identity={tmp_path}/key", f"--model={tmp_path}/m.tflite"} < set(words)


def test_an_interrupted_task_ends_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tasks.subprocess, "run", interrupted)
    with pytest.raises(Exit) as end:
        tasks.build.body(Context())
    assert end.value.code == 130


def test_without_a_task_it_shows_its_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert bootstrap.main([]) == 1
    assert "Usage: python3 bootstrap.py TASK" in capsys.readouterr().out


def test_it_needs_the_standard_library_only() -> None:
    code = "import sys, bootstrap; sys.exit(any('site-packages' in str(m) for m in sys.modules.values()))"
    assert subprocess.run([sys.executable, "-S", "-c", code], cwd=Path(bootstrap.__file__).parent).returncode == 0
