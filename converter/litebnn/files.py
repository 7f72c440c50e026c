"""Reads model files up to a size limit, and writes files completely or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from litebnn.errors import ConversionError, naming, printable

# The largest size of a model file in bytes. A flatbuffer has at most 2 GiB, and external constants may follow it.
MOST_BYTES = 4 << 30
# The name of a temporary file begins with this number of letters of the final name.
_PREFIX = 32


@contextmanager
def open_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Opens a regular file; a pipe is refused, because reading it could wait forever.

    Raises:
        OSError: the file cannot be opened, or reading it fails inside the `with` statement.
        ConversionError: it is not a regular file, or no name of a file.
    """
    if "\0" in os.fsdecode(path):  # Python's own error does not name the file
        raise ConversionError(f"{os.fsdecode(path)} is no name of a file: it has a null character")
    # Opening a pipe without O_NONBLOCK would wait until another process writes to it.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ConversionError(f"{os.fspath(path)} is no regular file")
        with naming(path):
            yield file


def read_file(path: str | os.PathLike[str]) -> bytes:
    """The content of a file.

    Raises:
        OSError: the file cannot be read.
        ConversionError: it is not a regular file, or is larger than 4 GiB.
    """
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MOST_BYTES:
            most = f"{MOST_BYTES >> 30} GiB at most"
            raise ConversionError(f"{os.fspath(path)} has {size:,} bytes, expected {most}")
        return file.read()


def read_content(model: bytes | str | Path) -> tuple[str, bytes]:
    """Returns a name of the model for messages, and the model's bytes.

    Raises:
        TypeError: the model is neither bytes nor a path.
        ValueError: the bytes are not a .tflite file, or are too large.
        OSError: the file cannot be read.
    """
    if isinstance(model, str | os.PathLike):
        name, content = printable(model), read_file(model)
    elif isinstance(model, bytes | bytearray | memoryview):
        name, content = "the model", bytes(model)
    else:
        raise TypeError(f"model is {type(model).__name__}, expected bytes or the path of a .tflite file")
    if content[4:8] != b"TFL3":
        raise ValueError(f"{name} is no .tflite file: it lacks the identifier TFL3")
    return name, content


def check_destination(path: Path, kind: str, *others: Path | None) -> None:
    """Raises an error before any work is done if a file cannot be written.

    `path` is the path of the future file. `kind` is the kind of file for messages, such as ".tflite". `others` are
    files that the future file must not replace; None for a file that is not given.

    Raises:
        ValueError: the file's folder is missing, the path is not a regular file, or it is one of the others.
    """
    if not path.parent.is_dir():
        raise ValueError(f"{path.parent} is no folder to write {path.name} to")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no file: expected the name of a {kind} file to write")
    if path.resolve() in {other.resolve() for other in others if other is not None}:
        raise ValueError(f"{path} is another file of this command: expected another name for the {kind} file")


def check_suffix(option: str, path: Path, *suffixes: str) -> None:
    """Refuses a file name with an unexpected suffix.

    Raises:
        ValueError: the name has none of these suffixes.
    """
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"{option} {path}: expected a name that ends in {' or '.join(suffixes)}")


def write_whole(path: Path, content: bytes) -> None:
    """Replaces a file, or the target of a link, by a complete file, never by a part.

    Raises:
        OSError: the file cannot be written.
    """
    named, path = path, path.resolve()
    part: Path | None = None
    try:
        # The temporary file gets only the beginning of the final name. A longer name might exceed the system's limit.
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name[:_PREFIX], suffix=".part")
        part = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            # Without fsync, the disk might have the new name but not the content after a power failure.
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        part.chmod(0o666 & ~mask)
        part.replace(path)
    except OSError as error:
        # The error names the final file, because the name of the temporary file would mean nothing to the user.
        error.filename, error.filename2 = str(named), None
        raise
    finally:
        if part is not None:
            part.unlink(missing_ok=True)
