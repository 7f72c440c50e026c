"""The finding of `litebnn doctor` on one requirement."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

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
    """The command with which this Python's pip installs a package.

    >>> pip_install("rich").endswith("pip install rich")
    True
    """
    pip = shutil.which("pip")
    # The symbolic link to Python is not followed, because its target lies outside of the virtual environment.
    python, here = Path(sys.executable), Path.cwd()
    if pip is not None and Path(pip).parent == python.parent:
        return f"pip install {what}"
    shown = python.relative_to(here) if python.is_relative_to(here) else python
    return f"{shlex.quote(str(shown))} -m pip install {what}"


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
