"""Lists the requirements of litebnn that this machine has and lacks, with the command that installs each missing
one."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

from litebnn.doctor.finding import BROKEN, MISSING, OK, Finding, together
from litebnn.doctor.packages import look_at_extras, look_at_python
from litebnn.doctor.running import look_at_library, look_at_runtime

__all__ = ["BROKEN", "MISSING", "OK", "Finding", "examine", "together"]

# The project's folder, if this module is in a source checkout.
_ROOT = Path(__file__).resolve().parents[3]


def examine() -> Iterator[Finding]:
    """Yields all findings: the requirements of a user, and in a checkout also those of builds and tests.

    Nothing is installed, and the network is not used. Runtimes and the library are loaded in separate processes.
    """
    is_checkout = (_ROOT / "toolchains" / "doctor.py").is_file()
    python = list(look_at_python(is_checkout))
    yield from python
    # Without litebnn's required packages, the modules that find runtimes cannot be imported.
    if all(finding.state == OK for finding in python):
        yield from look_at_runtime()
        yield from look_at_library(is_checkout)
        yield from look_at_extras()
    if is_checkout:
        if str(_ROOT) not in sys.path:
            sys.path.insert(0, str(_ROOT))
        checkout = importlib.import_module("toolchains.doctor")
        if any(finding.name == "litebnn" and finding.state == MISSING for finding in python):
            yield from checkout.look_at_extras()
        yield from checkout.look_at_checkout()
