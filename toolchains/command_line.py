"""How the tools of this folder end."""

import sys
from collections.abc import Callable

from toolchains.targets import ToolkitError


def exit_code(work: Callable[[], object]) -> int:
    """Does a tool's work; what the user has to mend is one line on stderr."""
    try:
        work()
    except (ToolkitError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130
    return 0
