"""Lists the requirements of litebnn that this machine has and lacks, with the command that installs each missing
one."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from litebnn.doctor.finding import BROKEN, IN_CHECKOUT, MISSING, OK, ROOT, Finding, is_installed, together
from litebnn.doctor.packages import look_at_extras, look_at_python

__all__ = ["BROKEN", "MISSING", "OK", "Finding", "examine", "together"]


def examine() -> Iterator[Finding]:
    """Yields all findings: the requirements of a user, and in a checkout also those of builds and tests.

    Nothing is installed, and the network is not used. Runtimes and the library are loaded in separate processes.
    """
    python = list(look_at_python())
    yield from python
    # Without litebnn's required packages, the modules that find runtimes cannot be imported.
    if all(finding.state == OK for finding in python):
        from litebnn.doctor.running import look_at_library, look_at_runtime

        yield from look_at_runtime()
        yield from look_at_library()
        yield from look_at_extras()
    if IN_CHECKOUT:
        if str(ROOT) not in sys.path:
            sys.path.insert(0, str(ROOT))
        from litebnn.doctor import checkout

        if not is_installed():
            yield from checkout.look_at_extras()
        yield from checkout.look_at_checkout()
