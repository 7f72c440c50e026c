"""Model files: read up to a size that a machine has memory for, and written whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from litebnn.errors import ConversionError, naming

# A flatbuffer ends at 2 GiB, and constants may lie behind it.
MOST_BYTES = 4 << 30
# How many letters of a file's name begin that of a part of it.
_PREFIX = 32


@contextmanager
def open_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to read, and not what could keep one waiting, such as a pipe.

    Raises:
        OSError: it cannot be opened, or read in the body.
        ConversionError: it is no regular file.
    """
    # Without the flag, opening a pipe waits until something is written.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ConversionError(f"{os.fspath(path)} is no regular file")
        with naming(path):
            yield file


def read_file(path: str | os.PathLike[str]) -> bytes:
    """The content of a file.

    Raises:
        OSError: it cannot be read.
        ConversionError: it is no regular file, or larger than 4 GiB.
    """
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MOST_BYTES:
            most = f"{MOST_BYTES >> 30} GiB at most"
            raise ConversionError(f"{os.fspath(path)} has {size:,} bytes, expected {most}")
        return file.read()


def check_destination(path: Path, kind: str, *others: Path | None) -> None:
    """Says before any work that a file cannot be written.

    Args:
        path: where it is to be.
        kind: what it is, such as ".tflite".
        others: files that it may not replace; None for one that is not given.

    Raises:
        ValueError: its folder is missing, something stands there that is no file, or it is one of the others.
    """
    if not path.parent.is_dir():
        raise ValueError(f"{path.parent} is no folder to write {path.name} to")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no file: expected the name of a {kind} file to write")
    if path.resolve() in {other.resolve() for other in others if other is not None}:
        raise ValueError(f"{path} is another file of this command: expected another name for the {kind} file")


def write_whole(path: Path, content: bytes) -> None:
    """Replaces a file (of a link, the one it points to) by a complete one, never by a part of it.

    Raises:
        OSError: it cannot be written.
    """
    named, path = path, path.resolve()
    part: Path | None = None
    try:
        # A longer name than the file's might be too long.
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name[:_PREFIX], suffix=".part")
        part = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            # Without it, the new name may be on the disk before the content is, when the power goes.
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        part.chmod(0o666 & ~mask)
        part.replace(path)
    except OSError as error:
        # The name of the part says nothing to anyone.
        error.filename, error.filename2 = str(named), None
        raise
    finally:
        if part is not None:
            part.unlink(missing_ok=True)
