"""The command `litebnn`: one file a command, each of which imports what it needs only when it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from litebnn import __version__
from litebnn.cli import convert
from litebnn.errors import ConversionError

_COMMANDS = (convert,)


class _OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}", file=sys.stderr)
        raise SystemExit(1)


def _parser() -> argparse.ArgumentParser:
    parser = _OneLineParser(prog="litebnn", description="Binarized neural networks in TensorFlow Lite and LiteRT.")
    parser.add_argument("--version", action="version", version=f"litebnn {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_OneLineParser)
    for command in _COMMANDS:
        command.add_to(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code: 0, or 1 after a one-line message."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
        return 0
    except (ConversionError, ValueError, OSError) as error:
        message = " ".join(str(error).split())
        if isinstance(error, ConversionError) and str(options.model) not in message:
            message = f"{options.model}: {message}"
        print(f"litebnn: {message}", file=sys.stderr)
    except KeyboardInterrupt:
        print("litebnn: interrupted", file=sys.stderr)
    return 1
