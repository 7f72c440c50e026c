"""Prepares the standard streams and the signals of a command. The streams may be closed, or their encoding may lack
letters. If a signal ends the command, its `finally` blocks still run.
"""

from __future__ import annotations

import codecs
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TextIO

from litebnn.system import ENDING_SIGNALS

# Plain replacements for litebnn's symbols on terminals whose encoding lacks them.
_PLAIN = {"×": "x", "→": "->", "·": "-", "–": "-", "…": "...", "±": "+-", "µ": "u", "≥": ">="}
_REPLACE_LETTERS = "litebnn.plainly"


@contextmanager
def prepared() -> Iterator[None]:
    """Makes the standard streams accept any text, and lets a command clean up when a signal ends it.

    Raises:
        OSError: the output could not be written.
    """
    _open_closed_streams()
    codecs.register_error(_REPLACE_LETTERS, _replace_letters)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_REPLACE_LETTERS)
    # Python allows signal handlers only in the main thread.
    told = ENDING_SIGNALS if threading.current_thread() is threading.main_thread() else ()
    former = {number: signal.signal(number, _end) for number in told}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def as_shown(text: str) -> str:
    """Text in the form in which stdout shows it: letters that its encoding lacks are replaced."""
    encoding, errors = sys.stdout.encoding or "utf-8", sys.stdout.errors or "strict"
    return text.encode(encoding, errors).decode(encoding)


def _replace_letters(error: UnicodeError) -> tuple[str, int]:
    """An error handler for encoding: replaces litebnn's symbols by plain ones, and other letters by their numbers."""
    assert isinstance(error, UnicodeEncodeError)
    lacking = error.object[error.start : error.end]
    plain = (_PLAIN.get(letter) or letter.encode("ascii", "backslashreplace").decode() for letter in lacking)
    return "".join(plain), error.end


def flush() -> None:
    """Flushes stdout.

    Raises:
        OSError: the output could not be written. Stdout is then redirected, so that Python does not fail again at exit.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        error.filename = "stdout"
        raise


def _open_closed_streams() -> None:
    """Opens the standard streams that are closed.

    If a standard stream stayed closed, the next opened file would get the stream's number, and receive its output.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        if getattr(sys, name) is None:
            setattr(sys, name, _nowhere(number))


def _nowhere(number: int) -> TextIO:
    return os.fdopen(number, "r" if number == 0 else "w", closefd=False)


def _end(number: int, frame: FrameType | None) -> None:
    """Exits with 128 plus the signal's number, as a shell reports it, and runs every `finally` block."""
    raise SystemExit(128 + number)
