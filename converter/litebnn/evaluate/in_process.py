"""The simplest executor: batches run one after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from litebnn.evaluate.batches import Batch
from litebnn.evaluate.scoring import Result


class Work(Protocol):
    """A computation on batches; it can be pickled, and is sent to each process once."""

    def prepared(self) -> Callable[[Batch], Result]:
        """A function of a batch for use in one thread, with its interpreters ready."""
        ...


def run_in_process(work: Work, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Result]]:
    """Yields each batch with its result."""
    function = work.prepared()
    for batch in batches:
        yield batch, function(batch)
