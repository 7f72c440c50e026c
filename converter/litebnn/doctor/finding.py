"""The finding of `litebnn doctor` on one requirement."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

# The project's folder, if this module is in a source checkout.
ROOT = Path(__file__).resolve().parents[3]
# True if this module is in a source checkout, where bootstrap.py makes the environment .venv.
IN_CHECKOUT = (ROOT / "toolchains" / "needs.py").is_file()
_PYTHON_OF_VENV = ".venv/Scripts/python.exe" if os.name == "nt" else ".venv/bin/python"

# The three states of a finding. The requirement is installed and works; it is not installed, but a command can install
# it; or it is installed, but fails.
_APT = "apt install "
OK, MISSING, BROKEN = "ok", "missing", "broken"


@dataclass(frozen=True)
class Finding:
    """The state of one requirement of litebnn."""

    # The heading under which the requirement is listed.
    section: str
    name: str
    # The state of the requirement: `OK`, `MISSING` or `BROKEN`.
    state: str
    # The requirement's version or path, or the reason why it is not `OK`.
    detail: str = ""
    # The command that installs or repairs the requirement; "" if it is `OK`, or if the detail says what to do.
    install: str = ""


def pip_install(what: str) -> str:
    """The command that installs a package for the Python that has litebnn.

    >>> pip_install("rich").endswith("pip install rich")
    True
    """
    return with_pip(f"pip install {what}")


def with_pip(command: str) -> str:
    """The command, in which each `pip install` is run by the Python that has litebnn.

    If this Python lacks litebnn and runs in a checkout, this is the Python of .venv, and bootstrap.py makes .venv
    first. In all other cases it is this Python.
    """
    words = re.compile(r"(?<!\S)pip install(?= )")
    if not words.search(command):
        return command
    if IN_CHECKOUT and not is_installed():
        return "python3 bootstrap.py --list && " + words.sub(f"{_PYTHON_OF_VENV} -m pip install", command)
    pip = shutil.which("pip")
    # The symbolic link to Python is not followed, because its target lies outside of the virtual environment.
    python, here = Path(sys.executable), Path.cwd()
    if pip is not None and Path(pip).parent == python.parent:
        return command
    shown = shlex.quote(str(python.relative_to(here) if python.is_relative_to(here) else python))
    return words.sub(lambda _: f"{shown} -m pip install", command)


def is_installed() -> bool:
    """True if litebnn is installed in this Python, from a wheel or a checkout."""
    try:
        distribution("litebnn")
    except PackageNotFoundError:
        return False
    return True


def together(findings: Iterable[Finding]) -> list[Finding]:
    """Merges findings with the same state, detail and installer into one, with all their names and one command."""
    groups: dict[Finding, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(replace(finding, name="", install=_installer(finding.install)), []).append(finding)
    return [
        replace(group, name=", ".join(each.name for each in members), install=_one_command(members))
        for group, members in groups.items()
    ]


def _installer(command: str) -> str:
    """The part of an install command that must be equal for findings to be merged. For a command that only installs
    packages by apt, this is "apt install "; for any other command, it is the whole command.
    """
    return _APT if command.startswith(_APT) and "&&" not in command else command


def _one_command(findings: list[Finding]) -> str:
    first = findings[0].install
    if _installer(first) != _APT:
        return first
    packages = (package for finding in findings for package in finding.install.removeprefix(_APT).split())
    return _APT + " ".join(dict.fromkeys(packages))
