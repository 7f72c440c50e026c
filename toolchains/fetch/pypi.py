"""Downloads and installs packages of the Python package index, with this Python's pip, which checks the hashes."""

import subprocess
import sys
import tempfile
from pathlib import Path

from toolchains.fetch.lock import Locked
from toolchains.targets import ToolkitError


def install(locked: Locked, *arguments: str, what: str = "") -> None:
    """Installs a locked package without its dependencies, by default into this Python's environment.

    Args:
        locked: the package.
        arguments: additional arguments for pip, such as `--target`.
        what: the package's name in an error message, by default its requirement.

    Raises:
        ToolkitError: pip failed. The message has pip's first error, or its last line.
    """
    _pip("install", locked, arguments, what or locked.requirement)


def download(locked: Locked, folder: Path, *arguments: str) -> Path:
    """Downloads the wheel of a locked package into a folder, and returns its path.

    Raises:
        ToolkitError: as for `install`.
    """
    _pip("download", locked, (f"--dest={folder}", *arguments), locked.requirement)
    (wheel,) = folder.glob(f"{locked.package.replace('-', '_')}-{locked.version}-*.whl")
    return wheel


def _pip(verb: str, locked: Locked, arguments: tuple[str, ...], what: str) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", verb, "--quiet"]
    with tempfile.TemporaryDirectory(prefix="litebnn") as folder:
        requirements = Path(folder) / "requirements.txt"
        requirements.write_text(f"{locked.line}\n", encoding="utf-8")
        choice = ["--require-hashes", "--no-deps", "--only-binary=:all:", *arguments, f"--requirement={requirements}"]
        run = subprocess.run([*pip, *choice], capture_output=True, text=True)
    if run.returncode:
        lines = ["pip failed", *run.stderr.strip().splitlines()]
        reason = next((line for line in lines if line.startswith("ERROR: ")), lines[-1])
        raise ToolkitError(f"cannot {verb} {what}: {reason.strip()}")
