"""Makes a virtual environment, installs what a task needs, and runs the task there.

Usage: python3 bootstrap.py TASK [ARGUMENTS...]     (see all tasks: python3 bootstrap.py --list)

Needs Python 3.10 or newer and nothing else; every task but this file's own work is an invoke task of tasks.py.
"""

import argparse
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
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

OLDEST_PYTHON = (3, 10)

# These tasks need more of pyproject.toml's extras than `dev`.
EXTRAS = {
    "demo": ("dev", "demo"),
    "deploy": ("dev", "deploy"),
    "lint": ("dev", "test"),
    "test": ("dev", "demo", "test"),
}

# larq's metadata asks for numpy 1, which has no wheels for Python 3.13; larq itself runs with numpy 2.
WITHOUT_DEPENDENCIES = {"demo": ["larq>=0.13.3"]}
NEWEST_NUMPY_1 = (3, 12)


def say(message: str) -> None:
    print(f"bootstrap: {message}", flush=True)


@contextmanager
def locked() -> Iterator[None]:
    """Keeps two bootstraps out of one environment: the second waits, and finds it made."""
    with (ROOT / ".venv.lock").open("w") as file:
        if os.name == "posix":
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("waiting for another bootstrap, which is at the environment")
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make_environment() -> None:
    """Makes .venv, again where what is there cannot run (a moved folder, a removed Python)."""
    if PYTHON.exists() and subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return
    say(f"making {VENV.name} with Python {sys.version.split()[0]}")
    try:
        venv.EnvBuilder(with_pip=True, clear=True).create(VENV)
    except subprocess.CalledProcessError as error:
        raise OSError("this Python cannot install pip (on Debian: apt install python3-venv)") from error


def install(extras: tuple[str, ...]) -> None:
    """Installs litebnn (editable) with `extras`, unless that was done already for this pyproject.toml.

    One stamp file per extra holds the hash of the pyproject.toml it was installed from.
    """
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + str(ROOT).encode()).hexdigest()
    stamps = [VENV / f"litebnn-{extra}.stamp" for extra in extras]
    if all(stamp.exists() and stamp.read_text() == wanted for stamp in stamps):
        return
    say(f"installing litebnn[{','.join(extras)}] into {VENV.name} (a few minutes the first time)")
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--editable", f"{ROOT}[{','.join(extras)}]"], check=True)
    for extra in extras:
        if extra in WITHOUT_DEPENDENCIES and sys.version_info[:2] > NEWEST_NUMPY_1:
            subprocess.run([*pip, "--no-deps", *WITHOUT_DEPENDENCIES[extra]], check=True)
    for stamp in stamps:
        stamp.write_text(wanted)


def extras(arguments: list[str]) -> tuple[str, ...]:
    """The extras that a task needs, of which `arguments` are the name and what follows it."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-t", "--target", default="host")
    parser.add_argument("-r", "--runtimes", action="store_true")
    options, _ = parser.parse_known_args(arguments[1:])
    needed = EXTRAS.get(arguments[0], ("dev",))
    # Another target, and other runtimes, are tried in environments of their own: TensorFlow is not needed in this one.
    elsewhere = arguments[0] == "test" and (options.target != "host" or options.runtimes)
    return tuple(extra for extra in needed if not (elsewhere and extra == "demo"))


def main(arguments: list[str]) -> int:
    if sys.version_info < OLDEST_PYTHON:
        needed = ".".join(map(str, OLDEST_PYTHON))
        say(f"Python {needed} or newer is needed, this is {sys.version.split()[0]}")
        return 1
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 1
    try:
        with locked():
            make_environment()
            install(extras(arguments))
        return subprocess.run([PYTHON, "-m", "invoke", "--search-root", ROOT, *arguments]).returncode
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"cannot make the environment: {error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
