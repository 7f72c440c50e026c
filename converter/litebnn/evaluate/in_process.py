"""The simplest executor: batches run one after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from litebnn.evaluate.batches import Batch
from litebnn.evaluate.scoring import Result


class Work(Protocol):
    """A computation on batches. It can be pickled, because each process receives it once."""

    def prepared(self) -> Callable[[Batch], Result]:
        """Returns a function that computes a batch's result. The function is for use in one thread, and its
        interpreters are ready."""
        ...


def run_in_process(work: Work, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Result]]:
    """Runs batches one after the other, and yields each with its result."""
    function = work.prepared()
    for batch in batches:
        yield batch, function(batch)
