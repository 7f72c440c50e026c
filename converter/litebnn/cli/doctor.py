"""`litebnn doctor`: lists the requirements that this machine has and lacks, with commands that install the missing
ones."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from litebnn.cli.parsing import add_command, add_json

if TYPE_CHECKING:
    from litebnn.doctor import Finding

_BROKEN_CODE = 2


def add_to(commands: Any) -> None:
    """Adds the command `litebnn doctor` to argparse's `commands`."""
    parser = add_command(
        commands, "doctor", "list what this machine has and lacks, and how to install it", "doctor", "doctor --json"
    )
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from litebnn.cli.output import print_json
    from litebnn.doctor import BROKEN, examine

    findings = list(examine())
    broken = [finding for finding in findings if finding.state == BROKEN]
    if options.json:
        print_json({"ok": not broken, "findings": [vars(finding) for finding in findings]})
    else:
        _print(findings)
    return _BROKEN_CODE if broken else 0


def _print(findings: Sequence[Finding]) -> None:
    """Prints a heading for each section and a line for each finding. The line ends with the install command if the
    terminal is wide enough.

    This function needs only the standard library.
    """
    from litebnn.cli.streams import as_shown
    from litebnn.doctor import BROKEN, together
    from litebnn.errors import printable

    width = shutil.get_terminal_size((120, 24)).columns
    for section, of_section in groupby(findings, key=lambda finding: finding.section):
        print(section)
        for finding in together(of_section):
            state = finding.state.upper() if finding.state == BROKEN else finding.state
            line = f"  {state:8}{finding.name}" + (f": {finding.detail}" if finding.detail else "")
            whole = f"{line}  →  {finding.install}"
            is_one = len(whole) <= width
            print(as_shown(printable(whole if finding.install and is_one else line)))
            if finding.install and not is_one:
                print(as_shown(printable(f"{'':10}→  {finding.install}")))
