"""Makes a virtual environment, installs what a task needs, and runs the task there.

Usage: python3 bootstrap.py TASK [ARGUMENTS...]     (see all tasks: python3 bootstrap.py --list)

Needs Python 3.10 or newer and nothing else; every task but this file's own work is an invoke task of tasks.py.
"""

import argparse
import hashlib
import json
import os
import shlex
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
# PyTorch's exporter needs numpy 2, which larq does not know.
TORCH_VENV = ROOT / ".venv-torch"

OLDEST_PYTHON = (3, 10)

# These tasks need more of pyproject.toml's extras than `dev`.
EXTRAS = {
    "charts": ("dev", "compare"),
    "deploy": ("dev", "deploy"),
    "docs": ("dev", "docs"),
    "fuzz": ("dev", "test"),
    "lint": ("dev", "test"),
    "mutants": ("dev", "test"),
    "screenshots": ("dev", "demo", "docs", "test"),
    "test": ("dev", "demo", "larq", "compare", "docs", "notebook", "test"),
}
# What trains the demo's network is an extra of the same name; the first is the default.
TRAINERS = ("larq", "keras", "torch")

# larq's metadata asks for numpy 1, which has no wheels for Python 3.13; larq itself runs with numpy 2.
WITHOUT_DEPENDENCIES = {"larq": ["larq>=0.13.3"]}
NEWEST_NUMPY_1 = (3, 12)

# What pip is asked for in turn, until it finds a PyTorch for CPUs: PyPI's for Linux brings CUDA, several GB of it. The
# variable replaces the choice by pip's arguments of one's own.
TORCH_VARIABLE = "LITEBNN_TORCH"
TORCH_SOURCES = (
    ("torch==2.13.0",),
    ("torch", "--extra-index-url=https://download.pytorch.org/whl/cpu"),
)


def say(message: str) -> None:
    print(f"bootstrap: {message}", flush=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keeps two bootstraps out of one environment: the second waits, and finds it made."""
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


def make_environment(folder: Path) -> None:
    """Makes the environment, again where what is there cannot run (a moved folder, a removed Python)."""
    if python_of(folder).exists() and subprocess.run(pip(folder, "--version"), capture_output=True).returncode == 0:
        return
    say(f"making {folder.name} with Python {sys.version.split()[0]}")
    try:
        venv.EnvBuilder(with_pip=True, clear=True).create(folder)
    except subprocess.CalledProcessError as error:
        raise OSError("this Python cannot install pip (on Debian: apt install python3-venv)") from error


def install(folder: Path, extras: tuple[str, ...]) -> None:
    """Installs litebnn (editable) with `extras`, unless that was done already for this pyproject.toml.

    One stamp file per extra holds the hash of the pyproject.toml it was installed from.
    """
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + str(ROOT).encode()).hexdigest()
    stamps = [folder / f"litebnn-{extra}.stamp" for extra in extras]
    if all(stamp.exists() and stamp.read_text() == wanted for stamp in stamps):
        return
    if "torch" in extras:
        install_torch(folder)
    say(f"installing litebnn[{','.join(extras)}] into {folder.name} (a few minutes the first time)")
    subprocess.run(pip(folder, "install", "--quiet", "--editable", f"{ROOT}[{','.join(extras)}]"), check=True)
    for extra in extras:
        if extra in WITHOUT_DEPENDENCIES and sys.version_info[:2] > NEWEST_NUMPY_1:
            subprocess.run(pip(folder, "install", "--quiet", "--no-deps", *WITHOUT_DEPENDENCIES[extra]), check=True)
    for stamp in stamps:
        stamp.write_text(wanted)


def install_torch(folder: Path) -> None:
    """Installs PyTorch, for CPUs where pip finds that, and says what it is about to fetch."""
    if TORCH_VARIABLE in os.environ:
        chosen = tuple(shlex.split(os.environ[TORCH_VARIABLE]))
        say(f"fetching PyTorch as {TORCH_VARIABLE} says: pip install {shlex.join(chosen)}")
    elif (found := cpu_torch(folder)) is not None:
        chosen, version = found
        say(f"fetching PyTorch {version}, for CPUs (about 0.2 GB; with litert-torch the environment takes 2 GB)")
    else:
        chosen = ("torch",)
        say("fetching PyTorch with CUDA (several GB), for pip finds none for CPUs; interrupt to choose another by")
        say(f'{TORCH_VARIABLE}="torch --index-url=URL", where URL is of an index of https://pytorch.org/get-started')
    subprocess.run(pip(folder, "install", "--quiet", *chosen), check=True)


def cpu_torch(folder: Path) -> tuple[tuple[str, ...], str] | None:
    """pip's arguments for a PyTorch without CUDA and its version; None where pip finds none."""
    say("looking for a PyTorch for CPUs")
    for source in TORCH_SOURCES:
        # An index that cannot be reached is asked once, not for minutes.
        options = ("--dry-run", "--quiet", "--no-deps", "--ignore-installed", "--retries=0", "--report=-")
        asked = subprocess.run(pip(folder, "install", *options, *source), capture_output=True, text=True)
        if asked.returncode:
            continue
        (torch,) = (item["metadata"] for item in json.loads(asked.stdout)["install"])
        needs = " ".join(torch.get("requires_dist", ()))
        if sys.platform != "linux" or ("nvidia" not in needs and "cuda" not in needs):
            return source, str(torch["version"])
    return None


def environments(arguments: list[str]) -> list[tuple[Path, tuple[str, ...]]]:
    """The environments that a task needs with their extras, that which it runs in last.

    `arguments` are the task's name and what follows it.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-t", "--target", "--trainer", default="")
    parser.add_argument("-r", "--runtimes", action="store_true")
    parser.add_argument("-f", "--frameworks", default="torch")
    options, _ = parser.parse_known_args(arguments[1:])
    if arguments[0] == "demo":
        # The demo itself refuses a trainer that there is not.
        trainer = options.target if options.target in TRAINERS else TRAINERS[0]
        return [(TORCH_VENV if trainer == "torch" else VENV, ("dev", "demo", trainer))]
    if arguments[0] == "compare":
        with_torch = [(TORCH_VENV, ("dev", "demo", "torch"))] if "torch" in options.frameworks else []
        return [*with_torch, (VENV, ("dev", "demo", "keras", "compare"))]
    needed = EXTRAS.get(arguments[0], ("dev",))
    # Another target, and other runtimes, are tried in environments of their own: TensorFlow is not needed in this one.
    elsewhere = arguments[0] == "test" and (options.target not in ("", "host") or options.runtimes)
    return [(VENV, ("dev", "test") if elsewhere else needed)]


def main(arguments: list[str]) -> int:
    if sys.version_info < OLDEST_PYTHON:
        needed = ".".join(map(str, OLDEST_PYTHON))
        say(f"Python {needed} or newer is needed, this is {sys.version.split()[0]}")
        return 1
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 1
    try:
        for folder, extras in environments(arguments):
            with locked(folder):
                make_environment(folder)
                install(folder, extras)
        return subprocess.run([python_of(folder), "-m", "invoke", "--search-root", ROOT, *arguments]).returncode
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"cannot make the environment: {error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
