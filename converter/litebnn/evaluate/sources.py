"""Sources of labelled samples: folders of images, .npz and parquet files, and functions that yield batches."""

from __future__ import annotations

import hashlib
import os
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from litebnn.errors import check_type, naming, printable
from litebnn.evaluate.batches import Array, ArraysPart, Batch, Samples, Unreadable, as_labels
from litebnn.evaluate.extras import (
    failures_named,
    fingerprint_of,
    import_extra,
    import_function,
    is_function_name,
    name_of,
)
from litebnn.evaluate.images import decode
from litebnn.evaluate.rows import NpzRows, ParquetRows, reopened

IMAGE_SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
# The names of arrays and columns that hold images, in the order of preference.
IMAGES = ("images", "image", "x_test", "x", "img", "pixels", "x_train")
LABELS = ("labels", "label", "y_test", "y", "y_train")


@dataclass(frozen=True)
class Source(ABC):
    """A data set, which yields batches of samples."""

    name: str  # for messages
    size: int | None  # number of samples; None if it is known only after reading all of them
    fingerprint: str  # identifies the data set and its version
    classes: dict[int, str] = field(default_factory=dict)  # class names by label, if the data set has names

    @abstractmethod
    def batches(self, size: int) -> Iterator[Batch]:
        """Yields all samples in batches of `size`. The last batch, or the last one of a part of a file, may be
        smaller.

        Raises:
            ValueError: a function yields something that is not a batch.
        """


def open_source(
    data: str | os.PathLike[str] | Callable[[], Iterable[Any]], folder: str = "", labels: Sequence[str] = ()
) -> Source:
    """Opens a data set by its path or function.

    `data` is a folder of class folders with images, a .npz file, or a parquet file or a folder of them. A function, or
    its name module:function, yields batches: arrays [n, ...], or pairs of them and labels [n]. The function's module
    may be in `folder`. Class folders are numbered by `labels`, the names of a model's classes, if each has such a name.

    Raises:
        ValueError: `data` is none of these, is empty, or has no images; the message says what was expected.
        TypeError: `data` is neither a path nor a function.
        OSError: the data set cannot be read.
        ImportError: parquet files need pyarrow, which is not installed.
    """
    if callable(data):
        return FunctionSource(name_of(data), None, fingerprint_of(data), function=data)
    check_type("data", data, "a path or a function that yields batches", str, os.PathLike)
    text, path = os.fspath(data), Path(data)
    # An empty text is refused, because Path("") would mean the current folder.
    if text and path.is_dir():
        files = sorted(path.rglob("*.parquet"))
        return _parquet(text, files) if files else _class_folders(path, labels)
    if path.is_file() and path.suffix == ".npz":
        return _npz(path)
    if path.is_file() and path.suffix == ".parquet":
        return _parquet(text, [path])
    if is_function_name(text) and not path.exists():
        function = import_function(text, folder)
        return FunctionSource(text, None, fingerprint_of(function), function=function)
    found = "is no file or folder" if not text or not path.exists() else "is of no kind that is known"
    raise ValueError(
        f"{text or 'an empty name'} {found}: expected a folder of class folders, a .npz or .parquet file, a folder of "
        ".parquet files, or module:function"
    )


def holds_images(path: Path) -> bool:
    """True if a .npz file has labels or uint8 images, so that it is a data set and not inputs of a model. False for a
    file that cannot be read.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            images, labels = (_named(wanted, archive.files) for wanted in (IMAGES, LABELS))
            return images is not None and (
                (labels is not None and archive[labels].ndim == 1) or archive[images].dtype == np.uint8
            )
    except Exception:  # the error is reported later, when the file is read
        return False


def _fingerprint(paths: Iterable[Path], root: Path) -> str:
    digest = hashlib.sha256()
    for path in paths:
        status = path.stat()
        digest.update(f"{path.relative_to(root)}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class _FilesPart:
    """Image files with their labels."""

    files: tuple[tuple[str, int], ...]

    def load(self) -> Samples:
        loaded = [(_read_image(file), label) for file, label in self.files]
        good = [(image, label) for image, label in loaded if not isinstance(image, Unreadable)]
        bad = [image for image, _ in loaded if isinstance(image, Unreadable)]
        return Samples([image for image, _ in good], [label for _, label in good], bad)


def _read_image(file: str) -> Array | Unreadable:
    try:
        with naming(file):
            content = Path(file).read_bytes()
    except (FileNotFoundError, PermissionError) as error:
        return Unreadable(file, str(error.strerror))
    return decode(content, file)


@dataclass(frozen=True)
class FolderSource(Source):
    """Images in folders, one folder for each class."""

    files: tuple[tuple[str, int], ...] = field(default=(), repr=False)

    def batches(self, size: int) -> Iterator[Batch]:
        for index, start in enumerate(range(0, len(self.files), size)):
            files = self.files[start : start + size]
            yield Batch(index, len(files), _FilesPart(files))


def _class_folders(path: Path, names: Sequence[str]) -> FolderSource:
    """The class folders with their labels. A label is the number that is the folder's name, the folder's index
    in `names`, or else its index in sorted order.
    """
    folders = sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    counts = Counter(names)
    known = {name: label for label, name in enumerate(names) if counts[name] == 1}
    if folders and all(folder.name.isdecimal() for folder in folders):
        labels = {folder: int(folder.name) for folder in folders}
    elif all(folder.name in known for folder in folders):
        labels = {folder: known[folder.name] for folder in folders}
    else:
        labels = {folder: label for label, folder in enumerate(folders)}
    files = [
        (file, label)
        for folder, label in labels.items()
        for file in sorted(folder.rglob("*"))
        if file.suffix.lower() in IMAGE_SUFFIXES and file.is_file()
    ]
    if not files:
        raise ValueError(f"{path} has no images in class folders, such as {path}/cat/1.jpg, and no .parquet files")
    import_extra("PIL.Image", "image files")
    return FolderSource(
        str(path),
        len(files),
        _fingerprint((file for file, _ in files), path),
        {label: folder.name for folder, label in labels.items()},
        files=tuple((str(file), label) for file, label in files),
    )


@dataclass(frozen=True)
class _NpzPart:
    """Rows of a .npz file's arrays."""

    path: str
    names: tuple[str, ...]
    start: int
    stop: int

    def load(self) -> Samples:
        rows = reopened(self.path, self.names, self.start, lambda: NpzRows(self.path, self.names))
        images, *labels = rows.take(self.start, self.stop)
        return ArraysPart(images, as_labels(labels[0], len(images)) if labels else None).load()


@dataclass(frozen=True)
class NpzSource(Source):
    """Arrays of images and labels in a .npz file."""

    path: str = ""
    names: tuple[str, ...] = ()

    def batches(self, size: int) -> Iterator[Batch]:
        total = self.size or 0
        for index, start in enumerate(range(0, total, size)):
            stop = min(start + size, total)
            yield Batch(index, stop - start, _NpzPart(self.path, self.names, start, stop))


def _npz(path: Path) -> NpzSource:
    try:
        with naming(path), np.load(path, allow_pickle=False) as archive:
            names = tuple(archive.files)
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"{path} cannot be read as .npz: {error}") from None
    images, labels = _named(IMAGES, names), _named(LABELS, names)
    if images is None:
        raise ValueError(
            f"{path} holds {', '.join(names) or 'nothing'}: expected an array {IMAGES[0]}, and {LABELS[0]}"
        )
    chosen = (images,) if labels is None else (images, labels)
    rows = NpzRows(str(path), chosen)
    counts = [member.shape[0] for member in rows.members]
    rows.close()
    if len(set(counts)) != 1 or not counts[0]:
        raise ValueError(
            f"{path} has {' and '.join(map(str, counts))} rows of {' and '.join(chosen)}: expected as many"
        )
    return NpzSource(
        str(path), counts[0], _fingerprint([path], path.parent) + str(chosen), path=str(path), names=chosen
    )


def _named(wanted: Sequence[str], names: Sequence[str]) -> str | None:
    return next((name for name in wanted if name in names), None)


@dataclass(frozen=True)
class _ParquetPart:
    """Rows of a row group in a parquet file."""

    path: str
    columns: tuple[str, ...]
    group: int
    start: int
    stop: int

    def load(self) -> Samples:
        part = self.columns, self.group
        rows = reopened(self.path, part, self.start, lambda: ParquetRows(self.path, self.group, self.columns))
        images: list[Array] = []
        labels: list[int] = []
        bad: list[Unreadable] = []
        for number, (cell, *label) in enumerate(rows.take(self.start, self.stop), self.start):
            name = f"{self.path}, row {number} of group {self.group}"
            image = _cell_image(cell, name)
            if isinstance(image, Unreadable):
                bad.append(image)
            elif label and label[0] is None:
                bad.append(Unreadable(name, "it has no label"))
            else:
                images.append(image)
                labels += [int(each) for each in label]
        return Samples(images, labels if len(self.columns) > 1 else None, bad)


def _cell_image(cell: Any, name: str) -> Array | Unreadable:
    """The image in a parquet cell: encoded bytes, a struct with a field `bytes`, or nested lists of numbers."""
    content = cell.get("bytes") if isinstance(cell, dict) else cell
    if isinstance(content, bytes):
        return decode(content, name)
    return content if isinstance(content, np.ndarray) and content.size else Unreadable(name, "it has no image")


@dataclass(frozen=True)
class ParquetSource(Source):
    """A data set of columns of images and labels in parquet files. For each row group of the files, `groups` has the
    file, the group's number in the file, and its number of rows."""

    columns: tuple[str, ...] = ()
    groups: tuple[tuple[str, int, int], ...] = field(default=(), repr=False)

    def batches(self, size: int) -> Iterator[Batch]:
        index = 0
        for path, group, rows in self.groups:
            for start in range(0, rows, size):
                stop = min(start + size, rows)
                yield Batch(index, stop - start, _ParquetPart(path, self.columns, group, start, stop))
                index += 1


def _parquet(name: str, files: list[Path]) -> ParquetSource:
    parquet = import_extra("pyarrow.parquet", "parquet files")
    groups: list[tuple[str, int, int]] = []
    columns: tuple[str, ...] = ()
    for file in files:
        try:
            with naming(file), parquet.ParquetFile(file) as opened:
                schema, metadata = opened.schema_arrow, opened.metadata
        except (ValueError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise ValueError(f"{file} is no sound parquet file: {error}") from None
        found = _columns(file, schema)
        if columns and found != columns:
            raise ValueError(f"{file} has the columns {', '.join(found)}, {files[0]} has {', '.join(columns)}")
        columns = found
        groups += [(str(file), group, metadata.row_group(group).num_rows) for group in range(metadata.num_row_groups)]
    total = sum(rows for *_, rows in groups)
    if not total:
        raise ValueError(f"{name} has no rows")
    root = Path(name) if Path(name).is_dir() else Path(name).parent
    fingerprint = _fingerprint(files, root) + str(columns)
    return ParquetSource(name, total, fingerprint, columns=columns, groups=tuple(groups))


def _columns(file: Path, schema: Any) -> tuple[str, ...]:
    image, label = _named(IMAGES, schema.names), _named(LABELS, schema.names)
    if image is None:
        raise ValueError(f"{file} has the columns {', '.join(schema.names)}: expected {IMAGES[1]}, and {LABELS[1]}")
    types, kind = import_extra("pyarrow.types", "parquet files"), schema.field(image).type
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    has_bytes = types.is_struct(kind) and kind.get_field_index("bytes") >= 0
    if not (is_list or has_bytes or types.is_binary(kind) or types.is_large_binary(kind)):
        raise ValueError(
            f"{file}: the column {image} is {kind}, expected files' bytes, structures with bytes, or lists of numbers"
        )
    if label is not None and not types.is_integer(schema.field(label).type):
        raise ValueError(f"{file}: the column {label} is {schema.field(label).type}, expected integers")
    return (image,) if label is None else (image, label)


@dataclass(frozen=True)
class FunctionSource(Source):
    """A data set of the batches that a user's function yields. The function chooses the size of each batch."""

    function: Callable[[], Iterable[Any]] = field(default=tuple, repr=False)

    def batches(self, size: int) -> Iterator[Batch]:
        for index, batch in enumerate(self._yielded()):
            inputs, labels = _pair(batch, f"{self.name}: batch {index}")
            digest = zlib.crc32(np.ascontiguousarray(inputs).tobytes())
            if labels is not None:
                digest = zlib.crc32(np.ascontiguousarray(labels).tobytes(), digest)
            yield Batch(index, len(inputs), ArraysPart(inputs, labels), digest or 1)

    def _yielded(self) -> Iterator[Any]:
        with failures_named(self.name):
            yield from self.function()


def _pair(batch: Any, what: str) -> tuple[Array, Array | None]:
    inputs, labels = batch if isinstance(batch, tuple) and len(batch) == 2 else (batch, None)
    try:
        array = np.asarray(inputs)
        if array.ndim < 2 or not len(array) or array.dtype.kind not in "fiub":
            raise ValueError(f"{array.dtype} {list(array.shape)}")
    except ValueError as error:
        raise ValueError(printable(f"{what} is {error}, expected an array [n, ...] of numbers, or a pair")) from None
    try:
        return array, None if labels is None else as_labels(labels, len(array))
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None
