"""The simplest way to run batches: one after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from litebnn.evaluate.batches import Batch
from litebnn.evaluate.scoring import Result


class Work(Protocol):
    """What is done with every batch; pickle can hold it, and it travels to each process once."""

    def prepared(self) -> Callable[[Batch], Result]:
        """The function of a batch, for one thread."""
        ...


def run_here(work: Work, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Result]]:
    """Yields each batch with its result."""
    function = work.prepared()
    for batch in batches:
        yield batch, function(batch)
