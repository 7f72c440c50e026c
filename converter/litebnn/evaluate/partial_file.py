"""A file of results that survives an interruption. A header line identifies the job, and each finished batch has one
line.

Each line has a checksum and is appended by one write. Therefore, wherever the process ends, a line is either whole or
ignored.
"""

from __future__ import annotations

import errno
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from litebnn.errors import naming, printable
from litebnn.evaluate.batches import Batch
from litebnn.evaluate.scoring import Result
from litebnn.files import write_whole
from litebnn.system import lock, open_to_append

_FORMAT = "litebnn partial results 1"


class PartialFile:
    """An open partial file, from which results are read and to which results are appended.

    Args:
        path: the path of the file, which is created if it does not exist.
        job: strings that identify the job, made from the user's arguments.

    Raises:
        ValueError: the file is not a partial file, belongs to another job, or another process writes to it.
        OSError: the file cannot be read or created.
    """

    def __init__(self, path: Path, job: dict[str, Any]) -> None:
        self._path = path
        header = {"format": _FORMAT, **job}
        if not path.exists():
            write_whole(path, _line(header))
        self._handle = open_to_append(path)
        try:
            with naming(path), path.open("rb") as file:
                self._check(header, file)
                self._digests = dict(self._read(file))
        except BaseException:
            self.close()
            raise

    def _check(self, header: dict[str, Any], file: BinaryIO) -> None:
        try:
            lock(self._handle)
        except BlockingIOError:
            raise ValueError(f"{self._path} is in use: another process writes its results there") from None
        found = _content(file.readline())
        if found is None or found.get("format") != _FORMAT:
            raise ValueError(f"{self._path} holds no partial results of litebnn evaluate: name another file")
        for name, wanted in header.items():
            if found.get(name) != wanted:
                raise ValueError(
                    printable(
                        f"{self._path} holds results of another job: its {name} is {found.get(name)}, "
                        f"not {wanted}; remove it, or name another file"
                    )
                )

    def _read(self, file: BinaryIO) -> Iterator[tuple[int, int]]:
        """Yields the number and the digest of each batch whose line is complete. Removes the last line if it is
        truncated.
        """
        end = file.tell()
        for line in file:
            end += len(line) if line.endswith(b"\n") else 0
            found = _content(line)
            if found is not None:
                yield int(found["batch"]), int(found["digest"])
        os.ftruncate(self._handle, end)

    def kept(self) -> Iterator[tuple[int, Result]]:
        """Yields the number and result of each batch in the file, each batch once."""
        told: set[int] = set()
        with naming(self._path), self._path.open("rb") as file:
            next(file)
            for found in filter(None, map(_content, file)):
                if found["batch"] not in told:
                    told.add(found["batch"])
                    yield found["batch"], found["result"]

    def has(self, batch: Batch) -> bool:
        """True if the file has the batch's result.

        Raises:
            ValueError: the result in the file belongs to other samples.
        """
        if batch.index not in self._digests:
            return False
        if self._digests[batch.index] != batch.digest:
            raise ValueError(f"{self._path} holds results of other samples for batch {batch.index}: remove it")
        return True

    def add(self, batch: Batch, result: Result) -> None:
        """Appends a result.

        Raises:
            OSError: the result cannot be written; earlier results stay intact.
        """
        line = _line({"batch": batch.index, "digest": batch.digest, "result": result})
        if os.write(self._handle, line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))

    def close(self) -> None:
        """Closes the file and releases its lock."""
        os.close(self._handle)


def _line(content: dict[str, Any]) -> bytes:
    text = json.dumps(content, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _content(line: bytes) -> dict[str, Any] | None:
    """The content of a line of the partial file; None if the line is truncated or damaged."""
    checksum, _, text = line.rstrip(b"\n").partition(b" ")
    if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(text):
        return None
    found = json.loads(text)
    return found if isinstance(found, dict) else None
