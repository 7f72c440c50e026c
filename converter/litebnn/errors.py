"""The exceptions that litebnn raises, its warnings, and the form of values in their messages."""

from __future__ import annotations

import inspect
import operator
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# The most characters of a message, of a word in it, and of a value of an argument.
_MESSAGE, _WORD, _VALUE = 1200, 300, 100


def printable(text: object) -> str:
    r"""Text in one line, with every control character of a terminal escaped. Very long words and texts lose their
    middle.

    Names in a model and names of files may contain any characters, and megabytes of them.

    >>> printable("conv\n\x1b[31m")
    'conv\\n\\x1b[31m'
    >>> printable("a" * 1000 + "z") == 150 * "a" + "..." + 149 * "a" + "z"
    True
    """
    kept = _cut(str(text))
    return _cut("".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in kept))


def _cut(text: str) -> str:
    words = re.sub(rf"\S{{{_WORD + 1},}}", lambda word: _without_middle(word[0], _WORD), text)
    return _without_middle(words, _MESSAGE)


def _without_middle(text: str, most: int) -> str:
    half = most // 2
    return text if len(text) <= most + len("...") else f"{text[:half]}...{text[-half:]}"


def shown(value: object) -> str:
    """A value of an argument in a message: its beginning and its end in one line, without the quotes of a text.

    >>> shown("int4"), shown([1, 2]), shown(10**5000)
    ('int4', '[1, 2]', 'int')
    """
    try:
        text = value if isinstance(value, str) else repr(value)
    except Exception:  # of the value's class, or of an integer with more digits than Python prints
        text = type(value).__name__
    return printable(_without_middle(" ".join(text.split()), _VALUE))


def check_type(name: str, value: Any, expected: str, *types: type) -> None:
    """Refuses an argument of a type that it cannot have.

    Raises:
        TypeError: the argument is of none of these types.

    >>> check_type("partial", "kept.partial", "the path of a file", str, os.PathLike)
    """
    if not isinstance(value, types):
        raise TypeError(f"{name} is {type(value).__name__}, expected {expected}")


def whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """The value of an argument that is a whole number, of Python or of NumPy.

    Raises:
        TypeError: it is no whole number. True and False are none.
        ValueError: it is less than `least`, or more than `most`.

    >>> whole_number("top", 5, least=1)
    5
    """
    expected = f"expected a whole number of at least {least}" if most is None else f"expected {least} to {most}"
    # NumPy's booleans are recognized by the name of their class, because this module must not import NumPy.
    candidate: Any = None if type(value).__name__ in ("bool", "bool_") else value
    try:
        number = operator.index(candidate)
    except TypeError:
        raise TypeError(f"{name} is {shown(value)}, {expected}") from None
    if number < least or (most is not None and number > most):
        raise ValueError(f"{name} is {shown(number)}, {expected}")
    return number


def reason_of(error: BaseException) -> str:
    """An error's message; for errors of the system, without errno and file name."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


# Two limits in characters: for the part of another program's message that a litebnn message quotes, and for a text in
# brackets inside the quotation.
_LONGEST, _LONGEST_BRACKETS = 300, 60
_INNER_ERROR = "Exception encountered: "


def shortened(text: str) -> str:
    """Another program's message as one line: long texts in brackets are left out, and the line is cut after a sentence
    or a word.

    >>> shortened("Unknown layer: 'Mine'. Its configuration is {" + 50 * "'name': 'mine', " + "}")
    "Unknown layer: 'Mine'. Its configuration is {...}"
    """
    line = " ".join(_without_long_brackets(text).split())
    if len(line) <= _LONGEST:
        return line
    head = line[:_LONGEST]
    sentences = re.match(r".*[^\s.]{2}[.!?](?=\s)", head)
    return sentences[0] if sentences else f"{head.rpartition(' ')[0] or head} ..."


def _without_long_brackets(text: str) -> str:
    """The text with "..." in place of long parts between brackets."""
    kept, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "{[") - (letter in "}]" and depth > 0)
        if letter in "{[" and depth == 1:
            kept.append(text[start:place])
            start = place
        elif letter in "}]" and depth == 0:
            part, start = text[start : place + 1], place + 1
            kept.append(part if len(part) <= _LONGEST_BRACKETS else f"{part[0]}...{part[-1]}")
    rest = text[start:]
    return "".join([*kept, rest if depth == 0 or len(rest) <= _LONGEST_BRACKETS else f"{rest[0]}..."])


def told_by(error: BaseException) -> str:
    r"""The line of another program's error that states the cause. Keras writes it after the configuration of a
    layer.

    >>> told_by(ValueError("Error when deserializing class 'Mine' using config={}.\n\nException encountered: No such."))
    'No such.'
    """
    said = str(error).rpartition(_INNER_ERROR)[2]
    line = next((line for line in said.splitlines() if line.strip()), type(error).__name__)
    return shortened(line)


def reason_with_file(error: BaseException) -> str:
    """The reason of an error, after the name of its file if the system names one."""
    file = error.filename if isinstance(error, OSError) and error.strerror else None
    return f"{file}: {reason_of(error)}" if file else reason_of(error)


@contextmanager
def naming(file: str | os.PathLike[str]) -> Iterator[None]:
    """Adds the file's name to errors of reading and writing. Python adds it only to errors of opening.

    Raises:
        OSError: the block raised an OSError.
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(file)
        raise


class ConversionError(ValueError):
    """A model cannot be read or converted; the message is one line that says what was found and what was expected."""

    def __init__(self, message: object) -> None:
        super().__init__(printable(message))


class Defect(ConversionError):
    """litebnn failed on a model that passed its checks, which is a bug of litebnn to be reported. `__cause__` has
    the details.
    """


@contextmanager
def boundary() -> Iterator[None]:
    """A context manager that turns all exceptions into those that the converter's functions document.

    Raises:
        ConversionError: the block raised a ConversionError, or memory ran out.
        Defect: the block raised any other exception.
    """
    try:
        yield
    except ConversionError:
        raise
    except MemoryError as error:
        raise ConversionError(f"there is not enough memory: {error}") from error
    except Exception as error:
        raise Defect(f"litebnn fails on this model, please report it: {type(error).__name__}: {error}") from error


def warn(message: str, *modules: str) -> None:
    """Issues a warning that points at the first caller outside this module and outside the given modules."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__") in (__name__, *modules):
        frame, level = frame.f_back, level + 1
    warnings.warn(printable(message), stacklevel=level)
