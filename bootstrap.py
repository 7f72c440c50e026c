"""Makes the project's environment, and hands the task over to invoke, which reads tasks.py.

Usage: python3 bootstrap.py TASK [ARGUMENTS...]     (see all tasks: python3 bootstrap.py --list)
       python3 bootstrap.py doctor [--json]         (says what is here and what is missing; installs nothing)

Needs Python 3.10 or newer, and nothing else. A task installs the further extras of pyproject.toml that it needs.
"""

import hashlib
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
# A release is built in an environment of its own, whose packages have fixed versions and hashes.
RELEASE_VENV = ROOT / ".venv-release"
RELEASE_LOCK = ROOT / "toolchains" / "fetch" / "release.txt"

if sys.version_info < (3, 10):  # noqa: UP036
    sys.exit(f"bootstrap: Python 3.10 or newer is needed, this is {sys.version.split()[0]}")

# An older wheel is better than a newer release that pip would have to compile, by tools that may be missing. Compiling
# all 13,000 modules would take 45 s of processor time; Python compiles those that it imports.
INSTALL_OPTIONS = ("--quiet", "--no-input", "--no-compile", "--prefer-binary")


def say(message: str) -> None:
    print(f"bootstrap: {message}", flush=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Locks an environment, so that a second process waits until the first one has finished the environment."""
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
    """True if the environment's Python runs, which fails if the folder was moved or Python was removed."""
    return python_of(folder).exists() and subprocess.run(pip(folder, "--version"), capture_output=True).returncode == 0


def pip_install(folder: Path, *arguments: str) -> None:
    """Installs packages into an environment. pip's output appears only if it fails: with a CalledProcessError."""
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
    # Older releases take twice as long to find TensorFlow's requirements, but do if no index answers. This pip has no
    # hash, which all packages of a release's environment have.
    if folder != RELEASE_VENV:
        subprocess.run(pip(folder, "install", "--retries=0", "--timeout=15", "pip>=25.1"), capture_output=True)


def install(folder: Path, *extras: str) -> None:
    """Installs litebnn, editable, with extras of pyproject.toml. Each leaves a stamp, the hash of what it was installed
    from, and is then there."""
    sources = [ROOT / "pyproject.toml", *([RELEASE_LOCK] if folder == RELEASE_VENV else [])]
    wanted = hashlib.sha256(b"".join(file.read_bytes() for file in sources) + str(ROOT).encode()).hexdigest()
    stamps = [folder / f"litebnn-{extra}.stamp" for extra in extras]
    if all(stamp.exists() and stamp.read_text() == wanted for stamp in stamps):
        return
    say(f"installing litebnn[{','.join(extras)}] into {folder.name} (a few minutes the first time)")
    if folder == RELEASE_VENV:
        # Wheels only: the requirements that build a package from source have no hashes. Nor has litebnn's own folder,
        # which the hatchling of the lock builds.
        pip_install(folder, "--require-hashes", "--only-binary=:all:", "--requirement", str(RELEASE_LOCK))
        pip_install(folder, "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    else:
        pip_install(folder, "--editable", f"{ROOT}[{','.join(extras)}]")
    for stamp in stamps:
        stamp.write_text(wanted)


def task_variables(folder: Path) -> dict[str, str]:
    """The variables of a task. A Python that shall write no bytecode writes it into the environment: otherwise each of
    the tests' many processes would compile what it imports, for TensorFlow in 10 s."""
    variables = dict(os.environ)
    if variables.pop("PYTHONDONTWRITEBYTECODE", ""):
        variables.setdefault("PYTHONPYCACHEPREFIX", str(folder / "bytecode"))
    return variables


def doctor(*arguments: str) -> int:
    """Runs `litebnn doctor` with the environment's Python, or with this one if there is none. Installs nothing."""
    python = str(python_of(VENV)) if runs(VENV) else sys.executable
    path = os.pathsep.join(filter(None, [str(ROOT / "converter"), os.environ.get("PYTHONPATH")]))
    command = [python, "-m", "litebnn", "doctor", *arguments]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": path}).returncode


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 1
    folder, extras = (RELEASE_VENV, ("dev", "release")) if arguments[0] == "release" else (VENV, ("dev",))
    try:
        if arguments[0] == "doctor":
            return doctor(*arguments[1:])
        with locked(folder):
            make_environment(folder)
            install(folder, *extras)
        command = [str(python_of(folder)), "-m", "invoke", "--search-root", str(ROOT), *arguments]
        return subprocess.run(command, env=task_variables(folder)).returncode
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"cannot make the environment: {error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
