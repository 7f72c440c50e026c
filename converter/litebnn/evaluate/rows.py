"""Reads rows of large files in order. Earlier rows are skipped, and only few rows are kept in memory."""

from __future__ import annotations

import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from litebnn.errors import naming
from litebnn.evaluate.batches import Array
from litebnn.evaluate.extras import import_extra

# NumPy's names for Arrow's float types, if they differ.
_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}
# The number of rows of a parquet file that are decoded at a time.
_ROWS = 64


class Rows(Protocol):
    """An open file of rows, such as a .npz file or a parquet file."""

    position: int

    def close(self) -> None: ...


R = TypeVar("R", bound=Rows)
_open = threading.local()


def reopened(path: str, part: object, start: int, make: Callable[[], R]) -> R:
    """Returns the file that this thread read last, if it is the same file and not past row `start`. Otherwise opens the
    file again.
    """
    status = Path(path).stat()
    # A cluster worker may keep a file open for long. The inode, size and time of the file show if another file has
    # replaced it.
    key = path, part, status.st_ino, status.st_size, status.st_mtime_ns
    former = getattr(_open, "former", None)
    if former is not None and former[0] == key and former[1].position <= start:
        found: R = former[1]
        return found
    if former is not None:
        former[1].close()
    rows = make()
    _open.former = key, rows
    return rows


class NpzRows:
    """Arrays in a .npz file, without loading all of them.

    Raises:
        ValueError: NumPy did not write the file or an array, or an array holds objects or is in Fortran order.
        OSError: the file cannot be read.
    """

    def __init__(self, path: str, names: tuple[str, ...]) -> None:
        self.position = 0
        self.members = [_Member(path, name) for name in names]

    def take(self, start: int, stop: int) -> list[Array]:
        """The rows from `start` up to `stop` of each array."""
        self.position = stop
        return [member.take(start, stop) for member in self.members]

    def close(self) -> None:
        for member in self.members:
            member.close()


class _Member:
    """The rows of one array in a .npz file.

    Each object opens the archive again, because Python 3.12.1 and 3.13.0 seek wrongly if two members of one `ZipFile`
    are read by turns.
    """

    def __init__(self, path: str, name: str) -> None:
        self._what = f"{path}: {name}"
        with _damage_named(path):
            self._archive = zipfile.ZipFile(path)
        with _damage_named(self._what):
            self._file = self._archive.open(f"{name}.npy")
            form: Any = np.lib.format
            read = form.read_array_header_1_0 if form.read_magic(self._file) == (1, 0) else form.read_array_header_2_0
            shape, fortran, self.dtype = read(self._file)
        if fortran or self.dtype.hasobject or not shape:
            raise ValueError(f"{self._what} is {self.dtype} {list(shape)}, expected rows of numbers in C's order")
        self.shape: tuple[int, ...] = tuple(shape)
        self._start = self._file.tell()

    def take(self, start: int, stop: int) -> Array:
        row = int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize
        with _damage_named(self._what):
            self._file.seek(self._start + start * row)
            content = self._file.read((stop - start) * row)
            if len(content) != (stop - start) * row:
                raise EOFError("it is truncated")
        return np.frombuffer(content, self.dtype).reshape(stop - start, *self.shape[1:])

    def close(self) -> None:
        self._archive.close()


class ParquetRows:
    """A row group of a parquet file; each row is a tuple of the columns' values.

    Raises:
        ValueError: the file is damaged.
        OSError: the file cannot be read.
    """

    def __init__(self, path: str, group: int, columns: tuple[str, ...]) -> None:
        parquet = import_extra("pyarrow.parquet", "parquet files")
        self._what = path
        self.position = 0
        self._columns = columns
        self._rest: list[tuple[Any, ...]] = []
        with _damage_named(path):
            self._file = parquet.ParquetFile(path, buffer_size=1 << 20)
            self._batches = self._file.iter_batches(_ROWS, row_groups=[group], columns=list(columns), use_threads=False)

    def take(self, start: int, stop: int) -> list[tuple[Any, ...]]:
        """The rows from `start` up to `stop`."""
        with _damage_named(self._what):
            while self.position + len(self._rest) < stop:
                batch = next(self._batches, None)
                if batch is None:
                    raise EOFError(f"it has fewer than {stop} rows in a group")
                self._rest += zip(*(_values(batch.column(name)) for name in self._columns), strict=True)
                if self.position + len(self._rest) <= start:
                    self.position += len(self._rest)
                    self._rest.clear()
        taken = self._rest[start - self.position : stop - self.position]
        self._rest = self._rest[stop - self.position :]
        self.position = stop
        return taken

    def close(self) -> None:
        self._file.close()


def _values(column: Any) -> Iterator[Any]:
    """The values of a column: bytes and numbers unchanged, lists of numbers as arrays of the same type."""
    innermost, is_list = column.type, False
    while hasattr(innermost, "value_type") and "list" in str(innermost):
        innermost, is_list = innermost.value_type, True
    for value in column.to_pylist():
        yield np.asarray(value, _FLOATS.get(str(innermost), str(innermost))) if is_list and value is not None else value


@contextmanager
def _damage_named(what: str) -> Iterator[None]:
    """Adds the name of the file to errors that a library raises because of the file's content.

    Raises:
        ValueError: the content is damaged.
        OSError: the file cannot be read.
    """
    try:
        with naming(what):
            yield
    except (zipfile.BadZipFile, zlib.error, ValueError, KeyError, EOFError, NotImplementedError) as error:
        raise ValueError(f"{what} is damaged: {str(error) or type(error).__name__}") from None
    except OSError as error:
        # For damaged content, pyarrow raises an OSError that has no errno.
        if error.errno is not None:
            raise
        raise ValueError(f"{what} is damaged: {error}") from None
