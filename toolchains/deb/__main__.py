"""Makes Debian packages for a target's architecture: dist/PACKAGE_VERSION_ARCHITECTURE.deb.

Usage:

    python -m toolchains.deb --target=rpi4
"""

import sys

from toolchains.command_line import parser, run
from toolchains.deb.packages import deb
from toolchains.targets import ROOT


def make_and_print(target: str) -> None:
    """Makes the packages, and prints their paths."""
    for package in deb(target):
        print(package.relative_to(ROOT))


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    return run(parser("toolchains.deb", __doc__), make_and_print, arguments)


if __name__ == "__main__":
    sys.exit(main())
