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
    """The samples of one batch of a data set."""

    # One array for each sample: uint8 pixels [height, width, 1 or 3], or any array from the data set.
    inputs: Sequence[Array]
    labels: Sequence[int] | None  # class of each sample; None if the data set has no labels
    # The samples that could not be read. They are missing in `inputs` and `labels`.
    unreadable: Sequence[Unreadable] = ()


class Part(Protocol):
    """A range of a data set's samples. It pickles to few bytes and is equal in every process."""

    def load(self) -> Samples:
        """Reads the samples.

        Raises:
            OSError, ValueError: no sample can be read.
        """
        ...


@dataclass(frozen=True)
class Batch:
    """A numbered part of a data set."""

    index: int  # counted from 0
    size: int  # number of samples
    part: Part = field(compare=False)  # loads the samples
    # A hash of the samples if a user's function yielded them. It is 0 for samples from files, which are identified by
    # names and times.
    digest: int = 0


@dataclass(frozen=True)
class ArraysPart:
    """Samples that a user's function has yielded, and which are therefore already in memory."""

    inputs: Array
    labels: Array | None

    def load(self) -> Samples:
        return Samples(list(self.inputs), None if self.labels is None else [int(label) for label in self.labels])


def as_labels(labels: Any, count: int) -> Array:
    """Labels as integers [count].

    Raises:
        ValueError: the labels are not integers, or their number is not that of the samples. Rows of class scores are no
            labels.
    """
    array = np.asarray(labels)
    if array.shape == (count, 1):
        array = array[:, 0]
    if array.shape != (count,) or array.dtype.kind not in "iub":
        raise ValueError(f"the labels are {array.dtype} {list(array.shape)}, expected {count} integers")
    return array
