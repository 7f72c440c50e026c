"""The exceptions that litebnn raises on its own account, and its warnings."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


def printable(text: object) -> str:
    r"""Text in one line that moves no cursor and colours nothing: what a terminal would act on is spelled out.

    Names in a model, and names of files, are whatever their author wrote.

    >>> printable("conv\n\x1b[31m")
    'conv\\n\\x1b[31m'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))


def reason_of(error: BaseException) -> str:
    """What an error says; what the system says without the number that it has for it, and the file."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def said_of_file(error: BaseException) -> str:
    """The reason of an error, behind the file that it is about where the system names one."""
    file = error.filename if isinstance(error, OSError) and error.strerror else None
    return f"{file}: {reason_of(error)}" if file else reason_of(error)


@contextmanager
def naming(file: str | os.PathLike[str]) -> Iterator[None]:
    """Gives an error the file that it is about: opening a file names it, reading and writing do not.

    Raises:
        OSError: it was raised inside.
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
    """litebnn itself fails on a model that it has found sound: please report it. The cause says where."""


@contextmanager
def boundary() -> Iterator[None]:
    """Lets nothing out of the converter but what its functions say that they raise.

    Raises:
        ConversionError: it was raised inside, or there was not enough memory.
        Defect: anything else was raised inside.
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
    """A warning that points at the line that called one of these modules, the callers of this function."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__") in (__name__, *modules):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)
