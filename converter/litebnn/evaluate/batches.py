"""Batches of a data set: small descriptions from which any process can load the samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Unreadable(NamedTuple):
    """The name of a sample that cannot be read, and the reason."""

    name: str
    reason: str


class Samples(NamedTuple):
    """The samples of a batch.

    Attributes:
        inputs: one array for each sample: uint8 pixels [height, width, 1 or 3], or any array from the data set.
        labels: the class of each sample; None if the data set has no labels.
        unreadable: the samples that are left out of `inputs` and `labels`.
    """

    inputs: Sequence[Array]
    labels: Sequence[int] | None
    unreadable: Sequence[Unreadable] = ()


class Part(Protocol):
    """A range of a data set's samples; it pickles to few bytes and is equal in every process."""

    def load(self) -> Samples:
        """Reads the samples.

        Raises:
            OSError, ValueError: no sample can be read.
        """
        ...


@dataclass(frozen=True)
class Batch:
    """A numbered part of a data set.

    Attributes:
        index: the batch's number, from 0 on.
        size: the number of samples.
        part: loads the samples.
        digest: a hash of samples that a function yielded; 0 for files, whose names and times identify them.
    """

    index: int
    size: int
    part: Part = field(compare=False)
    digest: int = 0


@dataclass(frozen=True)
class ArraysPart:
    """Samples that are in memory already."""

    inputs: Array
    labels: Array | None

    def load(self) -> Samples:
        return Samples(list(self.inputs), None if self.labels is None else [int(label) for label in self.labels])


def as_labels(labels: Any, count: int) -> Array:
    """Labels as integers [count].

    Raises:
        ValueError: they are not integers, or not one for each sample: rows of class scores are no labels.
    """
    array = np.asarray(labels)
    if array.shape == (count, 1):
        array = array[:, 0]
    if array.shape != (count,) or array.dtype.kind not in "iub":
        raise ValueError(f"the labels are {array.dtype} {list(array.shape)}, expected {count} integers")
    return array
