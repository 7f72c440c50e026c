"""Model files: read up to a size that a machine has memory for, and written whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from litebnn.errors import ConversionError

# A flatbuffer ends at 2 GiB, and constants may lie behind it.
MOST_BYTES = 4 << 30


def read_file(path: str | os.PathLike[str]) -> bytes:
    """The content of a file.

    Raises:
        OSError: it cannot be read.
        ConversionError: it is no regular file, or larger than 4 GiB.
    """
    with Path(path).open("rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ConversionError(f"{os.fspath(path)} is no regular file")
        if status.st_size > MOST_BYTES:
            most = f"{MOST_BYTES >> 30} GiB at most"
            raise ConversionError(f"{os.fspath(path)} has {status.st_size:,} bytes, expected {most}")
        return file.read()


def check_destination(path: Path, kind: str) -> None:
    """Says before any work that a file cannot be written.

    Args:
        path: where it is to be.
        kind: what it is, such as ".tflite".

    Raises:
        ValueError: its folder is missing, or something stands there that is no file.
    """
    if not path.parent.is_dir():
        raise ValueError(f"{path.parent} is no folder to write {path.name} to")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no file: expected the name of a {kind} file to write")


def write_whole(path: Path, content: bytes) -> None:
    """Replaces a file (of a link, the one it points to) by a complete one, never by a part of it.

    Raises:
        OSError: it cannot be written.
    """
    path = path.resolve()
    part: Path | None = None
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
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
    finally:
        if part is not None:
            part.unlink(missing_ok=True)
