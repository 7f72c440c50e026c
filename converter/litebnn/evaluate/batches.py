"""Batches of a data set: small descriptions that any process can load the samples of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Unreadable(NamedTuple):
    """A sample that cannot be read: what it is called, and why."""

    name: str
    reason: str


class Samples(NamedTuple):
    """What a batch holds.

    Attributes:
        inputs: one array for each sample: uint8 pixels [height, width, 1 or 3], or what the data set holds.
        labels: the class of each; None where the data set has none.
        unreadable: the samples that are in neither of the two.
    """

    inputs: Sequence[Array]
    labels: Sequence[int] | None
    unreadable: Sequence[Unreadable] = ()


class Part(Protocol):
    """A stretch of a data set; small, and the same in every process."""

    def load(self) -> Samples:
        """Reads the samples.

        Raises:
            OSError, ValueError: none of them can be read.
        """
        ...


@dataclass(frozen=True)
class Batch:
    """A part of a data set by its number.

    Attributes:
        index: the number, from 0 on.
        size: how many samples it has.
        part: what loads them.
        digest: tells samples apart that a function has made; 0 for those of files, whose names and times do.
    """

    index: int
    size: int
    part: Part = field(compare=False)
    digest: int = 0


@dataclass(frozen=True)
class ArraysPart:
    """Samples that are at hand."""

    inputs: Array
    labels: Array | None

    def load(self) -> Samples:
        return Samples(list(self.inputs), None if self.labels is None else [int(label) for label in self.labels])


def as_labels(labels: Any, count: int) -> Array:
    """Labels as integers [count].

    Raises:
        ValueError: they are something else. Rows of scores, one for each class, are no labels.
    """
    array = np.asarray(labels)
    if array.shape == (count, 1):
        array = array[:, 0]
    if array.shape != (count,) or array.dtype.kind not in "iub":
        raise ValueError(f"the labels are {array.dtype} {list(array.shape)}, expected {count} integers")
    return array
