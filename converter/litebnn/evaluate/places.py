"""Where batches run: in this process, on processes of this machine, on a cluster, or on boards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from litebnn.evaluate.batches import Batch
from litebnn.evaluate.dask_cluster import DaskCluster, cores
from litebnn.evaluate.plain_loop import run_here
from litebnn.evaluate.scoring import Result

if TYPE_CHECKING:
    from litebnn.evaluate.on_boards import Boards

Place = Callable[[Any, Iterable[Batch]], Iterator[tuple[Batch, Result]]]


def place_of(workers: int | None, scheduler: str | None, boards: Boards | None, tell: Callable[[str], None]) -> Place:
    """The place that the user has chosen.

    Raises:
        ValueError: there are two, or `workers` is less than 0.
    """
    named = {"workers": workers, "scheduler": scheduler, "boards": boards}
    chosen = [name for name, value in named.items() if value is not None]
    if len(chosen) > 1:
        raise ValueError(f"{' and '.join(chosen)} exclude each other: batches run at one place")
    if boards is not None:
        return boards.place(tell)
    if scheduler is None and workers == 0:
        return run_here
    if workers is not None and workers < 0:
        raise ValueError(f"workers is {workers}, expected 0 or more")
    return DaskCluster(cores() if workers is None else workers, scheduler, tell).run
