"""Finds the line of a user's code on a stack of calls that passes through PyTorch and litebnn."""

from __future__ import annotations

import sys
from types import FrameType, TracebackType
from typing import NamedTuple

# Packages whose lines do not help a user: they are the same for every module.
_LIBRARIES = frozenset(("functorch", "jax", "jaxlib", "litebnn", "litert_torch", "numpy", "torch", "torchao"))
# A call from this package starts the user's forward. Lines outside of it belong to the program that converts.
_BORDER = "litebnn.frontends"


class Place(NamedTuple):
    """A line of a source file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}"


def calling_line(frame: FrameType | None) -> Place | None:
    """The innermost line of the user's forward from which `frame` was called; None if the library alone called it."""
    while frame is not None and not _is_border(frame):
        if not _is_library(frame):
            return Place(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


def failing_line(traceback: TracebackType | None) -> Place | None:
    """The innermost line of the user's forward in a traceback; None if it has none."""
    found = None
    while traceback is not None:
        if _is_border(traceback.tb_frame):
            found = None
        elif not _is_library(traceback.tb_frame):
            found = Place(traceback.tb_frame.f_code.co_filename, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found


def _is_border(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith(_BORDER)


def _is_library(frame: FrameType) -> bool:
    """True for a line of a library, and for code that PyTorch generates, which has no file."""
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    return package in _LIBRARIES or package in sys.stdlib_module_names or frame.f_code.co_filename.startswith("<")
