"""Chooses an executor: this process, processes of this machine, a cluster, or boards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from litebnn.errors import check_type, whole_number
from litebnn.evaluate.batches import Batch
from litebnn.evaluate.extras import import_extra
from litebnn.evaluate.scoring import Result
from litebnn.system import cores

if TYPE_CHECKING:
    from litebnn.evaluate.on_boards import Boards

_MOST_WORKERS = 1024

Executor = Callable[[Any, Iterable[Batch]], Iterator[tuple[Batch, Result]]]


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


def checked_workers(workers: Any) -> int:
    """The number of processes that the user has chosen.

    Raises:
        ValueError: it is negative, or larger than any machine could run.
        TypeError: it is no whole number.
    """
    return whole_number("workers", workers, 0, _MOST_WORKERS)


def executor_of(
    workers: int | None, scheduler: str | None, boards: Boards | None, on_warning: Callable[[str], None]
) -> Executor:
    """The executor that the user has chosen.

    Raises:
        ImportError: Dask is needed and not installed.
        ValueError: more than one executor is chosen, or `workers` is negative or too large.
        TypeError: `workers` is no whole number, or `scheduler` is no text.
    """
    named = {"workers": workers, "scheduler": scheduler, "boards": boards}
    chosen = [name for name, value in named.items() if value is not None]
    if len(chosen) > 1:
        raise ValueError(f"{' and '.join(chosen)} exclude each other: batches run at one place")
    if boards is not None:
        return boards.executor(on_warning)
    check_type("scheduler", scheduler, "an address", str, type(None))
    workers = cores() if workers is None else checked_workers(workers)
    if scheduler is None and workers == 0:
        return run_in_process
    import_extra("distributed", "several processes")
    from litebnn.evaluate.dask_cluster import DaskCluster

    return DaskCluster(workers, scheduler, on_warning).run
