"""The command `litebnn`: one file for each command, which imports heavy modules only when it runs.

A command's module has `add_to`, which adds it to the command line and sets `run` to the function that runs it. `run`
returns the exit code, or None for 0.

The exit code is 0 for success, and 1 for a failure, with one line on stderr that says why. The exit code 2 also means
success, but says that the answer to the command's question is no. If a signal ended the command, the code is 128 plus
the signal's number.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from litebnn import __version__
from litebnn.cli import benchmark, check, compare, completion, convert, doctor, evaluate, export, inspect, summary, zoo
from litebnn.cli.parsing import OneLineParser
from litebnn.cli.streams import flush, prepared
from litebnn.errors import ConversionError, printable, reason_with_file

_COMMANDS = (convert, export, inspect, summary, check, benchmark, compare, evaluate, zoo, doctor, completion)
_INTERRUPTED = 128 + 2


def command_line_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = OneLineParser(prog="litebnn", description="Binarized neural networks in TensorFlow Lite and LiteRT.")
    parser.add_argument("--version", action="version", version=f"litebnn {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=OneLineParser)
    for command in _COMMANDS:
        command.add_to(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    options = argparse.Namespace(model="")
    with prepared():
        try:
            try:
                code = command_line_parser().parse_args(arguments, namespace=options).run(options)
            finally:
                flush()
            return int(code or 0)
        except BrokenPipeError:
            # The program that reads the command's output has closed the pipe early, which is not an error of the
            # command.
            return 1
        except (ValueError, OSError, MemoryError, ImportError) as error:
            message, model = printable(" ".join(reason_with_file(error).split())), printable(options.model)
            if isinstance(error, ConversionError) and model not in message:
                message = f"{model}: {message}"
            print(f"litebnn: {message}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("litebnn: interrupted", file=sys.stderr)
            return _INTERRUPTED
