"""Runs batches on Dask: on processes of this machine, or on a cluster that exists."""

from __future__ import annotations

import itertools
import logging
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from litebnn.errors import printable
from litebnn.evaluate.batches import Batch
from litebnn.evaluate.extras import import_extra
from litebnn.evaluate.plain_loop import Work
from litebnn.evaluate.scoring import Result

# How often a batch is tried again after an error that may pass, and how many more batches than threads are under way,
# so that no worker waits for its next.
_RETRIES, _AHEAD = 3, 2
_CONNECT_SECONDS = 30

Tell = Callable[[str], None]


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass
class DaskCluster:
    """Where batches run.

    Args:
        workers: processes to start on this machine, each with one thread and one interpreter.
        scheduler: instead, the address of a scheduler, whose workers see the files of the data set by the same paths.
        tell: is told in one line of what went wrong and is made good.

    Raises:
        ImportError: Dask is not installed.
        ConnectionError: the scheduler cannot be reached, or has no workers.
        ValueError: a batch cannot be run.
    """

    workers: int
    scheduler: str | None
    tell: Tell
    _pending: dict[int, Batch] = field(default_factory=dict)
    _is_under_way: bool = False

    def run(self, work: Work, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Result]]:
        """Yields each batch with its result, in the order in which they are ready."""
        distributed = import_extra("distributed", "several processes")
        todo = iter(batches)
        while True:
            try:
                with _quiet_logs(), self._client(distributed) as client:
                    try:
                        yield from self._run_on(distributed, client, work, todo)
                    finally:
                        self._is_under_way = False
                return
            except _SchedulerLost:
                self.tell(
                    f"the scheduler at {self.scheduler} is gone: waiting for it, then {len(self._pending)} "
                    "batches that were under way run again"
                )

    @contextmanager
    def _client(self, distributed: Any) -> Iterator[Any]:
        if self.scheduler is None:
            # One thread a process for all that computes, whatever the user's own settings say.
            environment = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")}
            with (
                distributed.LocalCluster(
                    n_workers=self.workers,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address=None,
                    memory_limit=0,
                    silence_logs=logging.CRITICAL,
                    env=environment,
                ) as cluster,
                distributed.Client(cluster) as client,
            ):
                yield client
            return
        try:
            client = distributed.Client(self.scheduler, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, ImportError) as error:
            reason = " ".join(str(error).split())
            raise ConnectionError(f"no scheduler answers at {self.scheduler}: {printable(reason)}") from None
        try:
            try:
                client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
            except TimeoutError:
                raise ConnectionError(f"the scheduler at {self.scheduler} has no workers") from None
            yield client
        finally:
            client.close(timeout=2)

    def _run_on(
        self, distributed: Any, client: Any, work: Work, todo: Iterator[Batch]
    ) -> Iterator[tuple[Batch, Result]]:
        from litebnn.evaluate.dask_worker import Carrier, run_task

        name = f"litebnn-{uuid4().hex}"
        client.register_plugin(Carrier(work), name=name)
        finished = distributed.as_completed(loop=client.loop, raise_errors=False)
        futures: dict[Any, int] = {}

        def submit(batch: Batch) -> None:
            future = client.submit(run_task, name, batch, key=f"{name}-{batch.index}", retries=_RETRIES, pure=False)
            self._pending[batch.index] = batch
            futures[future.key] = batch.index
            finished.add(future)

        for batch in list(self._pending.values()):
            submit(batch)
        self._is_under_way = True
        client.subscribe_topic("all", self._on_event)
        window = _AHEAD * self.workers if self.scheduler is None else 0
        while True:
            most = window or _AHEAD * max(1, sum(client.nthreads().values()))
            for following in itertools.islice(todo, most - len(self._pending)):
                submit(following)
            if not self._pending:
                break
            future = next(finished)
            index = futures.pop(future.key)
            batch, result = self._pending[index], _result(distributed, future, self._pending[index])
            del self._pending[index]
            yield batch, result
        client.unregister_worker_plugin(name)

    def _on_event(self, event: Any) -> None:
        """Tells of a worker that went away unasked; called by the client's own thread."""
        _, what = event
        is_removal = isinstance(what, dict) and what.get("action") == "remove-worker" and not what.get("expected")
        if is_removal and self._is_under_way:
            self.tell("a worker process ended: what it was at runs again")


class _SchedulerLost(Exception):
    """The scheduler went away, and with it what was under way."""


def _result(distributed: Any, future: Any, batch: Batch) -> Result:
    """What a task gave.

    Raises:
        _SchedulerLost: nothing, for it is not known any more.
        ValueError: it failed, or ended too many workers.
    """
    if future.status in ("cancelled", "lost"):
        raise _SchedulerLost
    if future.status == "error":
        error = future.exception()
        if isinstance(error, distributed.KilledWorker):
            raise ValueError(f"batch {batch.index} ends the processes that it runs in, the last on {error.last_worker}")
        raise ValueError(f"batch {batch.index} fails: {type(error).__name__}: {' '.join(str(error).split())}")
    result: Result = future.result()
    if "error" in result:
        raise ValueError(result["error"])
    return result


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """What Dask logs of workers that end and connections that break is told in our own lines, where it matters."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado", "asyncio")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
