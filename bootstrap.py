"""Makes a virtual environment, installs what a task needs, and runs the task there.

Usage: python3 bootstrap.py TASK [ARGUMENTS...]     (see all tasks: python3 bootstrap.py --list)
       python3 bootstrap.py doctor [--json]         (says what is here and what is missing; installs nothing)

The script needs Python 3.10 or newer, and nothing else. The program invoke runs the tasks, which are in tasks.py.
"""

import argparse
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
# PyTorch has its own environment, because its exporter needs numpy 2, which larq's metadata excludes.
TORCH_VENV = ROOT / ".venv-torch"
# A release is built in an environment of its own, whose packages have fixed versions and hashes.
RELEASE_VENV = ROOT / ".venv-release"
RELEASE_LOCK = ROOT / "toolchains" / "fetch" / "release.txt"

OLDEST_PYTHON = (3, 10)
if sys.version_info < OLDEST_PYTHON:
    print("bootstrap: Python {}.{} or newer is needed, this is {}".format(*OLDEST_PYTHON, sys.version.split()[0]))
    sys.exit(1)

# The extras of pyproject.toml that a task always needs, in addition to `dev`.
EXTRAS = {
    "charts": ("bench",),
    "compare": ("demo", "keras", "compare"),
    "demo": ("demo",),
    "deploy": ("deploy",),
    "docker-image": ("docker",),
    "docs": ("docs",),
    "fuzz": ("test",),
    "lint": ("test",),
    "mutants": ("test",),
    "photo": ("keras", "photo"),
    "release": ("release",),
    "screenshots": ("demo", "docs", "test"),
    "test": ("test",),
}
# The further extras that a task needs, by the task, an option and the option's value. The value "yes" stands for a flag
# that is set.
OPTIONS = {
    **{(task, "toolchain", "docker"): ("docker",) for task in ("build", "bundle", "deploy", "wheel")},
    **{("demo", "trainer", trainer): (trainer,) for trainer in ("larq", "keras", "torch")},
    ("bench", "costs", "yes"): ("bench",),
    ("bench", "rules", "yes"): ("bench",),
    ("compare", "frameworks", "torch"): ("torch",),
    ("test", "deep", "yes"): ("compare", "docs", "notebook"),
    ("test", "long", "yes"): ("compare", "docs", "notebook"),
    ("test", "target", "host"): ("demo", "larq"),
    ("test", "runtimes", "yes"): (),
}
# The default values of tasks' options.
DEFAULTS = {
    ("compare", "frameworks"): "keras,torch",
    ("demo", "trainer"): "larq",
    ("test", "target"): "host",
}
# The one-letter forms that invoke derives for the options in OPTIONS.
LETTERS = {
    "costs": "c",
    "deep": "d",
    "frameworks": "f",
    "long": "l",
    "rules": "r",
    "runtimes": "r",
    "target": "t",
    "toolchain": "o",
    "trainer": "t",
}
# `test --runtimes` tests each runtime in a separate environment, so the environment here does not need TensorFlow. This
# row replaces the extras of the default target by those of `--runtimes`.
REPLACED = {("test", "runtimes", "yes"): ("test", "target", "host")}

# For an extra, the newest Python for which all its requirements have wheels, and the extra that replaces it on newer
# Pythons.
NEWEST_PYTHON = {"larq": ((3, 13), "keras"), "compare": ((3, 13), "")}
NO_WHEELS = "needs tf-keras (Keras 2), which has no release for the TensorFlow of Python 3.14"

# larq's metadata requires numpy 1, which has no wheels for Python 3.13. Larq itself runs with numpy 2, so it is
# installed without its dependencies there.
WITHOUT_DEPENDENCIES = {"larq": ["larq>=0.13.3"]}
NEWEST_NUMPY_1 = (3, 12)

# These tasks need large packages, which keep pip and one CPU busy for minutes, and the library for this machine. The
# build, which runs at the same time, needs only some requirements of the extra `dev`. The values are its steps, modules
# of toolchains. Tests also need the example programs, which are built if the runtime was fetched.
BUILDING = {"compare": ("build",), "demo": ("build",), "photo": ("build",), "test": ("runtime_library", "build")}
TOMLI = "tomli>=2; python_version < '3.11'"
NEEDED_TO_BUILD = ("cmake>=3.25", "filelock>=3.12", "ninja>=1.11", "pyelftools>=0.30", TOMLI)

# Older releases of pip take up to twice as long to find and install TensorFlow and its requirements. Most of that time
# they compare the files of indexes with the tags of this Python.
FAST_PIP = "pip>=25.1"

# An older wheel is better than a newer release that pip would have to compile, by tools that may be missing. Python
# compiles the modules that it imports. All 13,000 of them would take 45 s of processor time.
INSTALL_OPTIONS = ("--quiet", "--no-input", "--no-compile", "--prefer-binary")
# By default, pip retries an unreachable index for minutes.
GIVES_UP_SOON = ("--retries=0", "--timeout=15")

# pip's arguments for PyTorch, tried in turn until one gives a build for CPUs. PyPI's build for Linux requires several
# GB of CUDA. The environment variable LITEBNN_TORCH replaces these arguments with the user's own.
TORCH_VARIABLE = "LITEBNN_TORCH"
TORCH_SOURCES = (
    ("torch==2.13.0",),
    ("torch", "--extra-index-url=https://download.pytorch.org/whl/cpu"),
)


def say(message: str) -> None:
    print(f"bootstrap: {message}", flush=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Locks an environment, so that a second bootstrap waits until the first one has finished the environment."""
    with folder.with_name(f"{folder.name}.lock").open("w") as file:
        if os.name == "posix":
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("waiting for another bootstrap, which is at the environment")
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def python_of(folder: Path) -> Path:
    """The Python of an environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def pip(folder: Path, *arguments: str) -> list[str]:
    """The command that runs an environment's pip."""
    return [str(python_of(folder)), "-m", "pip", "--disable-pip-version-check", *arguments]


def runs(folder: Path) -> bool:
    """True if the environment exists and its Python runs, which fails if the folder was moved or Python was removed."""
    return python_of(folder).exists() and subprocess.run(pip(folder, "--version"), capture_output=True).returncode == 0


def pip_install(folder: Path, *arguments: str) -> None:
    """Installs packages into an environment. pip's output appears only if it fails, so pip must not ask for input.

    Raises:
        CalledProcessError: pip failed.
    """
    command = pip(folder, "install", *INSTALL_OPTIONS, *arguments)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        print(done.stdout.decode(errors="replace"), end="", flush=True)
        raise subprocess.CalledProcessError(done.returncode, command)


def make_environment(folder: Path) -> None:
    """Makes the environment if it does not exist, and again if the existing one does not run."""
    if runs(folder):
        return
    say(f"making {folder.name} with Python {sys.version.split()[0]}")
    try:
        venv.EnvBuilder(with_pip=True, clear=True).create(folder)
    except subprocess.CalledProcessError as error:
        raise OSError("this Python cannot install pip (on Debian: apt install python3-venv)") from error
    # Everything in a release's environment has a hash, which this pip has not. If an index has no newer pip, the older
    # one stays.
    if folder != RELEASE_VENV:
        subprocess.run(pip(folder, "install", *INSTALL_OPTIONS, *GIVES_UP_SOON, FAST_PIP), capture_output=True)


def stamps(folder: Path, extras: tuple[str, ...]) -> dict[Path, str]:
    """For each extra, the file that marks it as installed, and its text: a hash of what it was installed from."""
    files = [ROOT / "pyproject.toml", *([RELEASE_LOCK] if folder == RELEASE_VENV else [])]
    wanted = hashlib.sha256(b"".join(file.read_bytes() for file in files) + str(ROOT).encode()).hexdigest()
    return {folder / f"litebnn-{extra}.stamp": wanted for extra in extras}


def has(folder: Path, extras: tuple[str, ...]) -> bool:
    """True if the extras were installed from this pyproject.toml."""
    return all(stamp.exists() and stamp.read_text() == wanted for stamp, wanted in stamps(folder, extras).items())


def begin_build(folder: Path, task: str) -> subprocess.Popen[bytes] | None:
    """Begins the steps in BUILDING for this machine, by the CMake of the environment in which the task will run.

    None if there is no compiler, or pip cannot install what the build needs. The task builds too. It waits for this
    build, compiles what is missing, and reports what failed.
    """
    if not os.environ.get("CXX") and not any(map(shutil.which, ("c++", "g++", "clang++"))):
        return None
    command = pip(folder, "install", *INSTALL_OPTIONS, *GIVES_UP_SOON, *NEEDED_TO_BUILD)
    if subprocess.run(command, capture_output=True).returncode:
        return None
    say("building the library while pip works")
    code = "; ".join(f"import toolchains.{step}; toolchains.{step}.main([])" for step in BUILDING[task])
    command, variables = [str(python_of(folder)), "-c", code], with_litebnn(task_variables(folder))
    return subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def install(folder: Path, extras: tuple[str, ...]) -> None:
    """Installs litebnn as an editable package with `extras`, if that was not done already for this pyproject.toml."""
    if has(folder, extras):
        return
    if "torch" in extras:
        install_torch(folder)
    say(f"installing litebnn[{','.join(extras)}] into {folder.name} (a few minutes the first time)")
    if folder == RELEASE_VENV:
        # Only wheels are installed, because the requirements that build a package from source have no hashes.
        pip_install(folder, "--require-hashes", "--only-binary=:all:", "--requirement", str(RELEASE_LOCK))
        # litebnn's own folder has no hash. It is built by the hatchling that the lock has installed.
        pip_install(folder, "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    else:
        pip_install(folder, "--editable", f"{ROOT}[{','.join(extras)}]")
    for apart in filter(None, map(without_dependencies, extras)):
        pip_install(folder, "--no-deps", *apart)
    for stamp, wanted in stamps(folder, extras).items():
        stamp.write_text(wanted)


def without_dependencies(extra: str) -> list[str]:
    """The requirements of an extra that this Python needs and that pip must install without their dependencies."""
    return WITHOUT_DEPENDENCIES.get(extra, []) if sys.version_info[:2] > NEWEST_NUMPY_1 else []


def install_torch(folder: Path) -> None:
    """Installs PyTorch and announces the download. The build for CPUs is preferred if pip finds one."""
    if TORCH_VARIABLE in os.environ:
        chosen = tuple(shlex.split(os.environ[TORCH_VARIABLE]))
        say(f"fetching PyTorch as {TORCH_VARIABLE} says: pip install {shlex.join(chosen)}")
        pip_install(folder, *chosen)
        return
    found = cpu_torch(folder)
    if found is not None:
        chosen, version = found
        say(f"fetching PyTorch {version}, for CPUs (about 0.2 GB; with litert-torch the environment takes 2 GB)")
    else:
        chosen = ("torch",)
        say("fetching PyTorch with CUDA (several GB), for pip finds none for CPUs; interrupt to choose another by")
        say(f'{TORCH_VARIABLE}="torch --index-url=URL", where URL is of an index of https://pytorch.org/get-started')
    pip_install(folder, *chosen)


def cpu_torch(folder: Path) -> tuple[tuple[str, ...], str] | None:
    """pip's arguments for a PyTorch without CUDA and its version; None if pip finds none."""
    say("looking for a PyTorch for CPUs")
    for source in TORCH_SOURCES:
        # pip would retry an unreachable index for minutes.
        options = ("--dry-run", "--quiet", "--no-deps", "--ignore-installed", "--retries=0", "--report=-")
        asked = subprocess.run(pip(folder, "install", *options, *source), capture_output=True, text=True)
        if asked.returncode:
            continue
        (torch,) = (item["metadata"] for item in json.loads(asked.stdout)["install"])
        needs = " ".join(torch.get("requires_dist", ()))
        if sys.platform != "linux" or ("nvidia" not in needs and "cuda" not in needs):
            return source, str(torch["version"])
    return None


def given_options(task: str, arguments: list[str]) -> dict[str, str]:
    """The given values of the task's options that OPTIONS contains."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    for option in sorted({option for name, option, _ in OPTIONS if name == task}):
        names = f"-{LETTERS[option]}", f"--{option}"
        if (task, option, "yes") in OPTIONS:
            parser.add_argument(*names, action="store_const", const="yes")
        else:
            parser.add_argument(*names)
    return vars(parser.parse_known_args(arguments)[0])


def is_worth_building(arguments: list[str]) -> bool:
    """True if the task with these arguments takes long to install, and needs the library for this machine."""
    return arguments[0] in BUILDING and given_options(arguments[0], arguments[1:]).get("target", "host") == "host"


def needed_extras(task: str, given: dict[str, str]) -> list[str]:
    """The extras that a task needs with these options, in addition to `dev`."""
    options = {**{option: value for (name, option), value in DEFAULTS.items() if name == task}, **given}
    chosen = [(task, option, value) for option, values in options.items() for value in values.split(",")]
    replaced = [REPLACED[row] for row in chosen if row in REPLACED]
    found = [*EXTRAS.get(task, ())]
    for row in chosen:
        found += OPTIONS.get(row, ()) if row not in replaced else ()
    return found


def for_this_python(task: str, extra: str, is_named: bool) -> list[str]:
    """The extra, or its replacement if its requirements have no wheels for this Python.

    Raises:
        OSError: an option names the extra, or the task cannot run without it and it has no replacement.
    """
    newest, other = NEWEST_PYTHON.get(extra, (sys.version_info[:2], ""))
    if sys.version_info[:2] <= newest:
        return [extra]
    if is_named or (not other and task != "test"):
        raise OSError(f"the extra {extra} {NO_WHEELS}")
    say(f"the extra {extra} {NO_WHEELS}: {other + ' takes its place' if other else 'its tests are skipped'}")
    return [other] if other else []


def environments(arguments: list[str]) -> list[tuple[Path, tuple[str, ...]]]:
    """The environments that a task needs, each with its extras. The task runs in the last one.

    `arguments` are the task's name and its arguments.

    Raises:
        OSError: an extra has no wheels for this Python.
    """
    task = arguments[0]
    given = given_options(task, arguments[1:])
    extras = [
        fitting
        for extra in needed_extras(task, given)
        for fitting in for_this_python(task, extra, extra in given.values())
    ]
    if task == "release":
        return [(RELEASE_VENV, ("dev", *extras))]
    found: list[tuple[Path, tuple[str, ...]]] = []
    if "torch" in extras:
        found.append((TORCH_VENV, ("dev", "demo", "torch")))
        extras.remove("torch")
    # A task that compares PyTorch with another framework runs in the other's environment.
    if not found or extras != ["demo"]:
        found.append((VENV, ("dev", *extras)))
    return found


def doctor(arguments: list[str]) -> int:
    """Runs `litebnn doctor` with the environment's Python, or with this one if there is none. Installs nothing."""
    python = str(python_of(VENV)) if runs(VENV) else sys.executable
    command = [python, "-m", "litebnn", "doctor", *arguments]
    return subprocess.run(command, env=with_litebnn(dict(os.environ))).returncode


def with_litebnn(variables: dict[str, str]) -> dict[str, str]:
    """The environment variables with which a Python imports litebnn from this folder."""
    path = os.pathsep.join(filter(None, [str(ROOT / "converter"), variables.get("PYTHONPATH")]))
    return {**variables, "PYTHONPATH": path}


def task_variables(folder: Path) -> dict[str, str]:
    """The environment variables with which a task runs in the environment `folder`.

    If they tell Python to write no bytecode, Python writes it into that folder. Without it, each of the many processes
    of the tests would compile what it imports: for TensorFlow, this takes 10 s of processor time.
    """
    variables = dict(os.environ)
    if variables.pop("PYTHONDONTWRITEBYTECODE", ""):
        variables.setdefault("PYTHONPYCACHEPREFIX", str(folder / "bytecode"))
    return variables


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 1
    build = None
    try:
        if arguments[0] == "doctor":
            return doctor(arguments[1:])
        found = environments(arguments)
        for folder, extras in found:
            with locked(folder):
                make_environment(folder)
                if folder == found[-1][0] and is_worth_building(arguments) and not has(folder, ("dev",)):
                    build = begin_build(folder, arguments[0])
                install(folder, extras)
        command = [str(python_of(folder)), "-m", "invoke", "--search-root", str(ROOT), *arguments]
        return subprocess.run(command, env=task_variables(folder)).returncode
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"cannot make the environment: {error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    finally:
        if build and build.poll() is None:
            say("waiting for the build of the library")
            with suppress(KeyboardInterrupt):
                build.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
