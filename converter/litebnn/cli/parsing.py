"""Parsers of all commands. Their help ends with examples, and each error is one line."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from litebnn.errors import printable


class OneLineParser(argparse.ArgumentParser):
    """A parser that reports errors in one line, with exit code 1, and refuses options that have no effect."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.conditions: list[tuple[str, Callable[[argparse.Namespace], object], str]] = []

    def only_if(self, holds: Callable[[argparse.Namespace], object], otherwise: str, *options: str) -> None:
        """Adds a rule: some options have no effect unless other options are given.

        `options` are the names of these options, such as "--board". The default of each is None, False or empty, which
        means that the option is not given. `holds` is a function of the parsed options, which returns True if these
        options have an effect. `otherwise` is the end of a sentence that begins with an option's name, and says what
        the option needs.
        """
        self.conditions += [(option, holds, otherwise) for option in options]

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parses the command line.

        Raises:
            ValueError: an option has no effect.
        """
        found, unknown = super().parse_known_args(args, namespace)
        for option, holds, otherwise in self.conditions:
            if is_given(found, option) and not holds(found):
                raise ValueError(f"{option} {otherwise}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Exits with a one-line message. The method of argparse would also print the usage."""
        print(f"{self.prog}: {printable(message)}", file=sys.stderr)
        raise SystemExit(1)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Writes the help or the version. The method of argparse would ignore write errors.

        Raises:
            OSError: the text cannot be written.
        """
        if message:
            (file or sys.stderr).write(message)


def add_command(commands: Any, name: str, summary: str, *examples: str) -> OneLineParser:
    """Adds a command to the command line, and returns its parser.

    `commands` is argparse's action that holds the commands. `name` is the command's name. `summary` is one line for the
    help. `examples` are command lines without "litebnn", shown at the end of the help.

    Example:
        >>> commands = OneLineParser(prog="litebnn").add_subparsers()
        >>> add_command(commands, "check", "check a file", "check model.tflite").prog
        'litebnn check'
    """
    parser: OneLineParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog="\n".join(["examples:", *(f"  litebnn {example}" for example in examples)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def is_given(options: argparse.Namespace, *names: str) -> bool:
    """True if one of the options is given.

    Example:
        >>> is_given(argparse.Namespace(board=None, seed=0), "--board"), is_given(argparse.Namespace(seed=0), "--seed")
        (False, True)
    """
    values = (getattr(options, name.lstrip("-").replace("-", "_")) for name in names)
    return any(value is not None and value is not False and value != [] for value in values)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Adds the option `--json`, with which a command prints its result as JSON."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def file_path(text: str) -> Path:
    """Parses an option for a file or a folder. "" is refused, because it would mean the current folder.

    Example:
        >>> file_path("model.tflite").suffix
        '.tflite'
    """
    return Path(not_empty(text))


def not_empty(text: str) -> str:
    """Parses an option for a name, which must not be empty.

    Example:
        >>> not_empty("networks:quicknet")
        'networks:quicknet'
    """
    if not text:
        raise argparse.ArgumentTypeError("expected a name, not an empty one")
    return text


def names_function(text: str) -> bool:
    """True if the text for a data set or a model names a function, module:function; False for an existing file.

    Example:
        >>> names_function("my_data:batches"), names_function("images/train")
        (True, False)
    """
    return ":" in Path(text).name and not Path(text).exists()


def shape(text: str) -> tuple[int, ...]:
    """The shape in an argument such as "1,224,224,3"."""
    sizes = text.split(",")
    if not all(size.strip().isdecimal() and int(size) > 0 for size in sizes):
        raise argparse.ArgumentTypeError(f"{text} is no shape: expected whole numbers with commas between them")
    return tuple(map(int, sizes))


def at_least(least: int) -> Any:
    """Makes a parser of an option that is a whole number of at least `least`.

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
    """Parses an option that is a number of at least 0.

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
