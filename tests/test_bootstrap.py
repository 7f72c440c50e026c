"""Tests bootstrap.py and tasks.py without the network: a recorder replaces the commands that they run."""

import ast
import json
import os
import re
import subprocess
import sys
import textwrap
from contextlib import nullcontext
from pathlib import Path

import invoke
import pytest
from invoke.collection import Collection
from invoke.context import Context
from invoke.exceptions import Exit

import bootstrap
import tasks
from examples.compare.makers import FRAMEWORKS
from examples.mnist.trainers import TRAINERS
from litebnn.doctor import packages
from toolchains.targets import ROOT, read_toml


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that bootstrap.py runs if its environments exist. A fake pip takes PyTorch's metadata for each
    package source from the dictionary `FOUND`, which a test can fill.
    """
    for name, folder in (
        ("VENV", tmp_path / "venv"),
        ("TORCH_VENV", tmp_path / "venv-torch"),
        ("RELEASE_VENV", tmp_path / "venv-release"),
    ):
        monkeypatch.setattr(bootstrap, name, folder)
        python = bootstrap.python_of(folder)
        python.parent.mkdir(parents=True)
        python.touch()
    monkeypatch.delenv(bootstrap.TORCH_VARIABLE, raising=False)
    # On newer Pythons, bootstrap.py leaves some extras out.
    monkeypatch.setattr(bootstrap.sys, "version_info", (3, 12, 0))
    ran: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append([str(word) for word in command])
        if "--dry-run" in ran[-1]:
            found = FOUND.get(ran[-1][-1])
            report = json.dumps({"install": [{"metadata": found}]})
            return subprocess.CompletedProcess(command, 0 if found else 1, report, "")
        return subprocess.CompletedProcess(command, 3 if "invoke" in command else 0)

    monkeypatch.setattr(bootstrap.subprocess, "run", run)
    monkeypatch.setattr(bootstrap, "begin_build", lambda folder, task: None)
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


def test_pip_prefers_wheels(commands: list[list[str]]) -> None:
    """For the oldest Python, the newest release of a package, such as atheris, may have no wheel."""
    bootstrap.main(["test"])
    assert all("--prefer-binary" in command for command in commands if "install" in command)


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
        ("test", "dev,test,demo,larq"),
        ("test -k word --long", "dev,test,demo,larq,compare,docs,notebook"),
        ("test --deep", "dev,test,demo,larq,compare,docs,notebook"),
        ("test -d", "dev,test,demo,larq,compare,docs,notebook"),
        ("test --target=host", "dev,test,demo,larq"),
        ("test --target=rpi4", "dev,test"),
        ("test --target rpi4", "dev,test"),
        ("test -t rpi4", "dev,test"),
        ("test --runtimes", "dev,test"),
        ("build --target=rpi4", "dev"),
        ("build --target=rpi4 --toolchain=docker", "dev,docker"),
        ("build -t rpi4 -o docker", "dev,docker"),
        ("bundle --toolchain zig --target=rpi4", "dev"),  # the toolkit fetches zig by its hash
        ("wheel --target=rpi4", "dev"),
        ("wheel --target=rpi4 --toolchain=docker", "dev,docker"),
        ("deploy --target=rpi4 --host=pi@board --toolchain=docker", "dev,deploy,docker"),
        ("docker-image", "dev,docker"),
        ("bench --costs", "dev,bench"),
        ("bench -r", "dev,bench"),
        ("bench --zoo", "dev"),
        ("docs --tags", "dev,docs"),
        ("charts", "dev,bench"),
        ("demo --epochs=3", "dev,demo,larq"),
        ("demo --trainer=keras", "dev,demo,keras"),
        ("demo --trainer=abacus", "dev,demo"),
        ("compare --frameworks=keras", "dev,demo,keras,compare"),
    ],
)
def test_a_task_gets_the_extras_that_it_needs(commands: list[list[str]], arguments: str, extras: str) -> None:
    bootstrap.main(arguments.split())
    assert installs(commands)[0].endswith(f"[{extras}]")


@pytest.mark.parametrize(
    ("arguments", "begun"),
    [
        ("test", ["venv"]),
        ("test --deep", ["venv"]),
        ("test --target=rpi4", []),
        ("demo --trainer=torch", ["venv-torch"]),
        ("compare", ["venv"]),
        ("build", []),
    ],
)
def test_the_library_is_built_while_pip_works(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch, arguments: str, begun: list[str]
) -> None:
    built: list[str] = []

    def begin_build(folder: Path, task: str) -> subprocess.Popen[bytes]:
        assert arguments.split()[0] == task
        assert installs([command for command in commands if command[0] == str(bootstrap.python_of(folder))]) == []
        built.append(folder.name)
        return subprocess.Popen([sys.executable, "-c", ""])

    monkeypatch.setattr(bootstrap, "begin_build", begin_build)
    for _ in range(2):
        assert bootstrap.main(arguments.split()) == 3
        assert built == begun


@pytest.mark.parametrize(("task", "steps"), [("demo", ["build"]), ("test", ["runtime_library", "build"])])
@pytest.mark.parametrize(("compiler", "code"), [("c++", 0), ("c++", 1), ("", 0)])
def test_a_build_begins_unless_pip_fails_or_there_is_no_compiler(
    task: str,
    steps: list[str],
    compiler: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The build reports nothing, because the task builds again."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/ran\n[ "$2" != pip ] || exit {code}\necho chatter\n')
    python.chmod(0o755)
    (tmp_path / "ran").touch()
    monkeypatch.setattr(bootstrap, "python_of", lambda folder: python)
    monkeypatch.setenv("CXX", compiler)
    monkeypatch.setattr(bootstrap.shutil, "which", lambda program: None)
    build = bootstrap.begin_build(tmp_path, task)
    assert (build is not None) == (compiler != "" and code == 0)
    assert build is None or build.wait() == 0
    needed = *bootstrap.INSTALL_OPTIONS, *bootstrap.GIVES_UP_SOON, *bootstrap.NEEDED_TO_BUILD
    asked = " ".join(bootstrap.pip(tmp_path, "install", *needed)[1:])
    ran = (tmp_path / "ran").read_text().splitlines()
    begun = "-c " + "; ".join(f"import toolchains.{step}; toolchains.{step}.main([])" for step in steps)
    assert ran == [asked] * (compiler != "") + [begun] * (build is not None)
    assert "--retries=0" in asked
    assert "chatter" not in "".join(capfd.readouterr())


def test_a_build_imports_nothing_that_is_not_installed_for_it() -> None:
    code = "import sys, toolchains.build, toolchains.runtime_library; print(*sys.modules)"
    path = os.pathsep.join([str(ROOT), str(ROOT / "converter")])
    # Without site, the packages that a .pth file imports when Python starts are not there.
    packages = Path(invoke.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path.append({str(packages)!r}); {code}"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    known = {*sys.stdlib_module_names, "__main__", "__mp_main__", "bootstrap", "toolchains", "litebnn"}
    imported = {name.partition(".")[0] for name in done.stdout.split()}
    others = {name for name in imported if name not in known and not name.startswith("_")}
    assert others <= {"elftools", "filelock", "tomli"}


def test_a_release_is_built_by_packages_with_hashes(commands: list[list[str]], tmp_path: Path) -> None:
    """Only hashed wheels are fetched, and an environment that was made for another lock is made up to date."""
    bootstrap.main(["release", "--check"])
    first, second = [command for command in commands if "install" in command]
    assert {"--require-hashes", "--only-binary=:all:", str(bootstrap.RELEASE_LOCK)} <= set(first)
    assert {"--no-deps", "--no-build-isolation", "--editable", str(ROOT)} <= set(second)
    assert {command[0] for command in commands} == {str(bootstrap.python_of(tmp_path / "venv-release"))}
    commands.clear()
    bootstrap.main(["release"])
    assert installs(commands) == []


def test_another_lock_is_installed(commands: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bootstrap.main(["release"])
    commands.clear()
    monkeypatch.setattr(bootstrap, "RELEASE_LOCK", tmp_path / "release.txt")
    bootstrap.RELEASE_LOCK.write_text("invoke==2.2.1\n")
    bootstrap.main(["release"])
    assert len(installs(commands)) == 2


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
    assert {*bootstrap.EXTRAS, *bootstrap.BUILDING} <= set(TASKS)
    assert set(bootstrap.NEEDED_TO_BUILD) <= set(known["dev"])
    assert {extra for needed in (*bootstrap.EXTRAS.values(), *bootstrap.OPTIONS.values()) for extra in needed} <= set(
        known
    )
    assert set(bootstrap.NEWEST_PYTHON) | {other for _, other in bootstrap.NEWEST_PYTHON.values() if other} <= set(
        known
    )
    assert {extra: newest for extra, (newest, _) in bootstrap.NEWEST_PYTHON.items()} == packages.NEWEST_PYTHON
    first = (bootstrap.NEWEST_NUMPY_1[0], bootstrap.NEWEST_NUMPY_1[1] + 1)
    assert {extra: (extra, first) for extra in bootstrap.WITHOUT_DEPENDENCIES} == packages.APART
    for extra, requirements in bootstrap.WITHOUT_DEPENDENCIES.items():
        assert set(requirements) <= {text.partition(";")[0].strip() for text in known[extra]}
    assert f">={'.'.join(map(str, bootstrap.OLDEST_PYTHON))}" == project["requires-python"]


TASKS = {name: Collection.from_module(tasks)[name] for name in Collection.from_module(tasks).task_names}


@pytest.mark.parametrize("task", TASKS)
def test_options_and_their_defaults_are_those_of_the_task(task: str) -> None:
    """The table of options in bootstrap.py has a row for each value of a task's option that needs an extra."""
    arguments = {argument.name: argument for argument in TASKS[task].get_arguments()}
    rows = {(option, value) for name, option, value in bootstrap.OPTIONS if name == task}
    wanted = {("toolchain", "docker")} if "toolchain" in arguments else set()
    wanted |= {("trainer", trainer) for trainer in TRAINERS} if "trainer" in arguments else set()
    assert wanted <= rows
    for option, value in rows:
        assert bootstrap.LETTERS[option] in arguments[option].names
        assert (value == "yes") == (arguments[option].kind is bool)
    for option in {option for option, _ in rows} - {"trainer", "frameworks"}:
        default = arguments[option].default
        known = bootstrap.DEFAULTS.get((task, option), "")
        assert known == (default if (option, default) in rows else "")
    assert {option for name, option in bootstrap.DEFAULTS if name == task} <= {option for option, _ in rows}


def test_frameworks_that_are_not_named_are_the_tools_own() -> None:
    assert bootstrap.DEFAULTS["demo", "trainer"] == TRAINERS[0]
    assert bootstrap.DEFAULTS["compare", "frameworks"] == ",".join(FRAMEWORKS)


def test_every_extra_that_a_tool_asks_for_is_one_that_bootstrap_installs() -> None:
    """If the message of a tool names an extra to install, some task or option must be able to install it."""
    installed = {extra for needed in (*bootstrap.EXTRAS.values(), *bootstrap.OPTIONS.values()) for extra in needed}
    tools = [path for folder in ("toolchains", "bench", "fuzz", "mutants") for path in (ROOT / folder).rglob("*.py")]
    named = {
        extra
        for path in tools
        if not path.stem.endswith("_test") and path.name not in ("needs.py", "probes.py")
        for extras in re.findall(r"litebnn\[([\w,-]+)\]|extra `([\w-]+)`|needs\(\)\['(\w+)'\]", path.read_text())
        for extra in ",".join(filter(None, extras)).split(",")
    }
    extras = set(read_toml(ROOT / "pyproject.toml")["project"]["optional-dependencies"])
    assert "docker" in named
    assert named & extras <= installed


@pytest.mark.parametrize(
    ("arguments", "extras", "said"),
    [
        ("demo", "dev,demo,keras", "the extra larq needs tf-keras (Keras 2), which has no release"),
        ("demo --trainer=keras", "dev,demo,keras", ""),
        ("demo --trainer=larq", "", "cannot make the environment: the extra larq needs tf-keras"),
        ("compare", "", "cannot make the environment: the extra compare needs tf-keras"),
        ("charts", "dev,bench", ""),
        ("test --deep", "dev,test,demo,keras,docs,notebook", "the extra compare needs tf-keras"),
    ],
)
def test_extras_without_wheels_for_a_newer_python_are_named(
    commands: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: str,
    extras: str,
    said: str,
) -> None:
    monkeypatch.setattr(bootstrap.sys, "version_info", (3, 14, 0))
    assert bootstrap.main(arguments.split()) == (3 if extras else 1)
    assert [each.partition("[")[2].rstrip("]") for each in installs(commands)] == ([extras] if extras else [])
    printed = capsys.readouterr().out
    assert said in printed
    assert said or "has no release" not in printed


def test_an_older_python_is_refused_in_a_line() -> None:
    """Old Pythons must be able to parse all of bootstrap.py, and to run it up to the check of Python's version."""
    source = Path(bootstrap.__file__).read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 6))
    above, found, _ = source.partition("    sys.exit(1)\n")
    assert found
    code = f"import sys; sys.version_info = (3, 9, 2)\n{above}{found}"
    done = subprocess.run([sys.executable, "-c", f"__file__ = 'bootstrap.py'\n{code}"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.startswith("bootstrap: Python 3.10 or newer is needed, this is ")
    assert done.stdout.count("\n") == 1


PIP = "import sys; print('WARNING: chatter'); print('ERROR: no such thing', file=sys.stderr); sys.exit(CODE)"


@pytest.mark.parametrize("code", [0, 1])
def test_what_pip_says_is_shown_only_where_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], code: int
) -> None:
    monkeypatch.setattr(bootstrap, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(bootstrap, "runs", lambda folder: True)
    monkeypatch.setattr(bootstrap, "python_of", lambda folder: sys.executable)
    replaced = [sys.executable, "-c", PIP.replace("CODE", str(code))]
    monkeypatch.setattr(bootstrap, "pip", lambda folder, *arguments: replaced)
    (tmp_path / ".venv").mkdir()
    assert bootstrap.main(["--version"]) == code
    printed = capfd.readouterr()
    assert ("WARNING: chatter" in printed.out, "ERROR: no such thing" in printed.out) == (bool(code), bool(code))
    assert printed.err == ""


@pytest.mark.parametrize(("code", "shown"), [(0, ""), (3, "start-up lines\n")])
def test_what_a_quiet_task_logs_is_shown_only_where_it_fails(
    capfd: pytest.CaptureFixture[str], code: int, shown: str
) -> None:
    logs = f"import sys; print('result'); print('start-up lines', file=sys.stderr); sys.exit({code})"
    with pytest.raises(Exit) if code else nullcontext():
        tasks._quietly("-c", logs)
    assert capfd.readouterr() == ("result\n", shown)


def test_tasks_that_start_a_framework_are_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet: set[object] = set()
    monkeypatch.setattr(tasks, "_python", lambda *words, **options: None)
    monkeypatch.setattr(tasks, "_quietly", lambda *words, **options: quiet.add(words[1]))
    for task, options in ((tasks.demo, {}), (tasks.compare, {}), (tasks.bench, {"zoo": True})):
        task.body(Context(), **options)
    assert quiet == {
        "examples.mnist.demo",
        "examples.compare",
        "bench.zoo",
    }


def test_bytecode_is_kept_even_where_python_shall_write_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    (tmp_path / "imported.py").touch()
    variables = bootstrap.task_variables(tmp_path / "venv")
    subprocess.run([sys.executable, "-c", "import imported"], cwd=tmp_path, env=variables, check=True)
    assert list((tmp_path / "venv").rglob("imported.*.pyc"))
    assert not list(tmp_path.glob("__pycache__"))


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


@pytest.mark.parametrize(("name", "asks"), [("VENV", True), ("TORCH_VENV", True), ("RELEASE_VENV", False)])
@pytest.mark.parametrize("code", [0, 1])
def test_an_environment_takes_a_newer_pip_if_there_is_one(
    name: str, asks: bool, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    def run(command: list[str], check: bool = False, **_: object) -> subprocess.CompletedProcess[bytes]:
        ran.append(command)
        if check and code:
            raise subprocess.CalledProcessError(code, command)
        return subprocess.CompletedProcess(command, code)

    monkeypatch.setattr(bootstrap, name, tmp_path)
    monkeypatch.setattr(bootstrap.venv.EnvBuilder, "create", lambda builder, folder: None)
    monkeypatch.setattr(bootstrap.subprocess, "run", run)
    bootstrap.make_environment(tmp_path)
    assert [command[-1] for command in ran] == [bootstrap.FAST_PIP] * asks


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
        # The second bootstrap.py waits until the first one releases the lock.
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


def test_the_doctor_makes_no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "VENV", tmp_path / ".venv")
    asked: list[list[str]] = []

    def run(command: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(command, 2)

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
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "without_keras",
        "-p",
        "no:cacheprovider",
        "converter/litebnn/keras",
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert "keras is missing: " in done.stdout
    assert " error" not in done.stdout
