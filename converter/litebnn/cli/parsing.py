"""What the commands' parsers have in common: examples under their help, and mistakes in one line."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any, NoReturn

from litebnn.errors import printable


class OneLineParser(argparse.ArgumentParser):
    """A parser whose complaint is one line, and the exit code 1."""

    def error(self, message: str) -> NoReturn:
        """Ends the process."""
        print(f"{self.prog}: {printable(message)}", file=sys.stderr)
        raise SystemExit(1)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Writes help or version; what argparse has here says nothing where that fails.

        Raises:
            OSError: it cannot be written.
        """
        if message:
            (file or sys.stderr).write(message)


def add_command(commands: Any, name: str, summary: str, *examples: str) -> argparse.ArgumentParser:
    """Adds a command to those of the command line.

    Args:
        commands: argparse's action that holds them.
        name: the word that calls it.
        summary: what it does, in a line.
        examples: command lines without "litebnn", which end its help.

    Example:
        >>> commands = argparse.ArgumentParser(prog="litebnn").add_subparsers()
        >>> add_command(commands, "check", "check a file", "check model.tflite").prog
        'litebnn check'
    """
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog="\n".join(["examples:", *(f"  litebnn {example}" for example in examples)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def add_json(parser: argparse.ArgumentParser) -> None:
    """Adds the option that makes `litebnn.cli.output.print_json` say what a command has found."""
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")


def file_path(text: str) -> Path:
    """The type of an option that is a file or a folder; "" would be the folder that the command is started in.

    Example:
        >>> file_path("model.tflite").suffix
        '.tflite'
    """
    return Path(not_empty(text))


def not_empty(text: str) -> str:
    """The type of an option that is a name.

    Example:
        >>> not_empty("networks:quicknet")
        'networks:quicknet'
    """
    if not text:
        raise argparse.ArgumentTypeError("expected a name, not an empty one")
    return text


def at_least(least: int) -> Any:
    """The type of an option that is a whole number of at least `least`.

    Example:
        >>> at_least(1)("4")
        4
    """

    def number(text: str) -> int:
        value = int(text) if text.strip().lstrip("+-").isdecimal() else least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"{text} is no whole number of at least {least}")
        return value

    return number


def not_negative(text: str) -> float:
    """The type of an option that is a number of at least 0.

    Example:
        >>> not_negative("1e-3")
        0.001
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no number of at least 0")
    return value
