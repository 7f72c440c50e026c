"""What surrounds a command: streams that are closed or know few letters, and signals that end it."""

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

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
# What stands for signs of ours where a terminal has none of them.
_PLAIN = {"×": "x", "→": "->", "·": "-", "–": "-", "…": "...", "±": "+-", "µ": "u", "≥": ">="}
_PLAINLY = "litebnn.plainly"


@contextmanager
def prepared() -> Iterator[None]:
    """Gives a command streams that it can write any text to, and time to clean up when it is told to end.

    Raises:
        OSError: what was printed could not be written.
    """
    _open_closed_streams()
    codecs.register_error(_PLAINLY, _plainly)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_PLAINLY)
    # Only the main thread can be told of signals.
    told = _SIGNALS if threading.current_thread() is threading.main_thread() else ()
    former = {number: signal.signal(number, _end) for number in told}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def as_shown(text: str) -> str:
    """Text as stdout shows it, whose encoding may lack some of its letters."""
    encoding, errors = sys.stdout.encoding or "utf-8", sys.stdout.errors or "strict"
    return text.encode(encoding, errors).decode(encoding)


def _plainly(error: UnicodeError) -> tuple[str, int]:
    """What an encoding lacks: other signs for signs of ours, and numbers for letters."""
    assert isinstance(error, UnicodeEncodeError)
    lacking = error.object[error.start : error.end]
    plain = (_PLAIN.get(letter) or letter.encode("ascii", "backslashreplace").decode() for letter in lacking)
    return "".join(plain), error.end


def flush() -> None:
    """Writes what was printed.

    Raises:
        OSError: it could not be written. The interpreter will not try, and fail, once more.
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
    """Without it, the next file that is opened would be stdout or stderr, and what is printed would end up in it."""
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
    """Ends as a shell reports the signal, by way of every `finally`."""
    raise SystemExit(128 + number)
