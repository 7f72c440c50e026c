"""The command `litebnn`: one file a command, each of which imports what it needs only when it runs.

A command's module has `add_to`, which adds it to the command line, and sets `run` to what runs it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from litebnn import __version__
from litebnn.cli import check, convert
from litebnn.cli.streams import flush, prepared
from litebnn.errors import ConversionError, printable

_COMMANDS = (convert, check)


class _OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {printable(message)}", file=sys.stderr)
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
    options = argparse.Namespace(model="")
    with prepared():
        try:
            try:
                _parser().parse_args(arguments, namespace=options).run(options)
            finally:
                flush()
            return 0
        except BrokenPipeError:
            # Whoever read the output has seen enough.
            return 1
        except (ValueError, OSError, MemoryError, ImportError) as error:
            message, model = printable(" ".join(str(error).split())), printable(options.model)
            if isinstance(error, ConversionError) and model not in message:
                message = f"{model}: {message}"
            print(f"litebnn: {message}", file=sys.stderr)
        except KeyboardInterrupt:
            print("litebnn: interrupted", file=sys.stderr)
        return 1
