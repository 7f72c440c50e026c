"""Runs batches on Dask: on processes of this machine, or on an existing cluster. Importing this module imports Dask."""

from __future__ import annotations

import itertools
import logging
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any
from uuid import uuid4

import dask.config
import distributed

from litebnn.errors import printable, reason_with_file
from litebnn.evaluate.batches import Batch
from litebnn.evaluate.executors import Work
from litebnn.evaluate.scoring import Result

# Two numbers: how often a batch is retried after an error that may be temporary, and how many batches each thread has
# in its queue. The queue keeps workers from waiting.
_RETRIES, _AHEAD = 3, 2
_CONNECT_SECONDS = 30
_ENVIRONMENT = "distributed.nanny.pre-spawn-environ"
# Settings for worker processes on this machine, which replace the user's own Dask settings. These workers share the
# machine's cores. Dask's measurements for its dashboard and its frequent internal polling would take CPU time from the
# models.
_ON_THIS_MACHINE: dict[str, object] = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.scheduler.work-stealing-interval": "1s",
    # Numerical libraries use one thread in each process.
    **{f"{_ENVIRONMENT}.{name}_NUM_THREADS": 1 for name in ("OMP", "MKL", "OPENBLAS")},
    # A worker keeps freed memory until it ends. Requesting the memory pages again would take a fifth of each batch's
    # time.
    f"{_ENVIRONMENT}.MALLOC_TRIM_THRESHOLD_": 1 << 28,
    f"{_ENVIRONMENT}.MALLOC_MMAP_THRESHOLD_": 1 << 28,
}

OnWarning = Callable[[str], None]


class Carrier(distributed.WorkerPlugin):  # type: ignore[misc]
    """A worker plugin that delivers the work to each worker once, including workers that join later."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def setup(self, worker: distributed.Worker) -> None:
        # Threads of a worker must not share interpreters.
        self._threads = threading.local()

    def run(self, batch: Batch) -> Result:
        """Computes the result of a batch.

        An error that the user must fix is returned as a result, because Dask would retry an exception.
        """
        try:
            if not hasattr(self._threads, "function"):
                self._threads.function = self._work.prepared()
            result: Result = self._threads.function(batch)
        except (ValueError, ImportError) as error:
            return {"error": " ".join(str(error).split())}
        return result


def run_task(name: str, batch: Batch) -> Result:
    """Computes the result of a batch in a worker, with the work that the worker's plugin `name` holds."""
    result: Result = distributed.get_worker().plugins[name].run(batch)
    return result


@dataclass
class DaskCluster:
    """An executor that runs batches on a Dask cluster.

    `workers` is the number of processes to start on this machine, each with one thread and one interpreter. `scheduler`
    is the address of a running scheduler, used instead of local processes. Its workers must see the data set's files
    under the same paths. `on_warning` is called with one line for each problem that was recovered from.

    Raises:
        ConnectionError: the scheduler cannot be reached, or has no workers.
        ValueError: a batch cannot be run.
    """

    workers: int
    scheduler: str | None
    on_warning: OnWarning
    _pending: dict[int, Batch] = field(default_factory=dict)

    def run(self, work: Work, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Result]]:
        """Yields each batch with its result, in the order of completion."""
        todo = iter(batches)
        while True:
            try:
                with _quiet_logs(), self._client() as client:
                    yield from self._run_on(client, work, todo)
                return
            except _SchedulerLost:
                self.on_warning(
                    f"the scheduler at {self.scheduler} is gone: waiting for it, then {len(self._pending)} "
                    "batches that were under way run again"
                )

    @contextmanager
    def _client(self) -> Iterator[Any]:
        if self.scheduler is None:
            with (
                dask.config.set(_ON_THIS_MACHINE),
                distributed.LocalCluster(
                    n_workers=self.workers,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address=None,
                    memory_limit=0,
                    silence_logs=logging.CRITICAL,
                ) as cluster,
                distributed.Client(cluster) as client,
            ):
                yield client
            return
        try:
            client = distributed.Client(self.scheduler, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, ImportError) as error:
            reason = " ".join(str(error).split())
            raise ConnectionError(printable(f"no scheduler answers at {self.scheduler}: {reason}")) from None
        try:
            try:
                with _asking_scheduler():
                    client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
            except distributed.TimeoutError:
                raise ConnectionError(f"the scheduler at {self.scheduler} has no workers") from None
            yield client
        finally:
            client.close(timeout=2)

    def _run_on(self, client: Any, work: Work, todo: Iterator[Batch]) -> Iterator[tuple[Batch, Result]]:
        name = f"litebnn-{uuid4().hex}"
        try:
            yield from self._results(client, work, todo, name)
        finally:
            # The workers of a cluster live longer than this job and should not keep the models, so the plugin that
            # holds the models is removed. Removing it fails if the scheduler was restarted and therefore does not know
            # the plugin.
            with suppress(ValueError, OSError):
                if self.scheduler is not None and client.status == "running":
                    client.unregister_worker_plugin(name)

    def _results(self, client: Any, work: Work, todo: Iterator[Batch], name: str) -> Iterator[tuple[Batch, Result]]:
        with _asking_scheduler():
            client.register_plugin(Carrier(work), name=name)
        # The queue `news` gets finished tasks and messages about lost workers from threads of the Dask client. Only the
        # thread that runs `_results` reads the queue.
        news: SimpleQueue[tuple[int, Any] | str] = SimpleQueue()

        def submit(batch: Batch) -> None:
            self._pending[batch.index] = batch
            future = client.submit(run_task, name, batch, key=f"{name}-{batch.index}", retries=_RETRIES, pure=False)
            future.add_done_callback(lambda done: news.put((batch.index, done)))

        def hear(event: Any) -> None:
            for line in _lines(event, name):
                news.put(line)

        for batch in list(self._pending.values()):
            submit(batch)
        client.subscribe_topic("all", hear)
        window = _AHEAD * self.workers if self.scheduler is None else 0
        while True:
            with _asking_scheduler():
                most = window or _AHEAD * max(1, sum(client.nthreads().values()))
            for following in itertools.islice(todo, most - len(self._pending)):
                submit(following)
            if not self._pending:
                break
            what = news.get()
            if isinstance(what, str):
                self.on_warning(what)
                with _asking_scheduler():
                    if self.scheduler is not None and not client.nthreads():
                        self.on_warning(f"the scheduler at {self.scheduler} has no workers left: waiting for one")
                continue
            index, future = what
            batch, result = self._pending[index], _result(future, self._pending[index])
            del self._pending[index]
            yield batch, result


def _lines(event: Any, name: str) -> list[str]:
    """If an event of the scheduler is the unexpected end of a worker that had tasks of this job, returns a message,
    otherwise None.
    """
    _, what = event
    if not isinstance(what, dict) or what.get("action") != "remove-worker" or what.get("expected"):
        return []
    lost = [*what.get("processing-tasks", ()), *what.get("lost-computed-tasks", ())]
    is_ours = any(str(key).startswith(name) for key in lost)
    return [f"the worker process at {what['worker']} ended: what it was at runs again"] if is_ours else []


class _SchedulerLost(Exception):
    """The connection to the scheduler broke, and the tasks in progress are lost."""


@contextmanager
def _asking_scheduler() -> Iterator[None]:
    """Turns every error that a broken connection to the scheduler raises into one exception.

    Raises:
        _SchedulerLost: the connection broke inside the block.
    """
    try:
        yield
    except (distributed.comm.CommClosedError, distributed.CancelledError, ConnectionError) as error:
        raise _SchedulerLost from error


def _result(future: Any, batch: Batch) -> Result:
    """The result of a finished task.

    Raises:
        _SchedulerLost: the scheduler no longer knows the task.
        ValueError: the task failed, or ended too many workers.
    """
    if future.status in ("cancelled", "lost"):
        raise _SchedulerLost
    if future.status == "error":
        error = future.exception()
        if isinstance(error, distributed.KilledWorker):
            raise ValueError(f"batch {batch.index} ends the processes that it runs in, the last on {error.last_worker}")
        raise ValueError(
            f"batch {batch.index} fails: {type(error).__name__}: {' '.join(reason_with_file(error).split())}"
        )
    with _asking_scheduler():
        result: Result = future.result()
    if "error" in result:
        raise ValueError(result["error"])
    return result


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """Silences Dask's logs about ended workers and broken connections, because `on_warning` reports those that
    matter."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado", "asyncio")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        with warnings.catch_warnings():
            # Only warnings of Dask's modules are silenced. The user must see the warnings that `on_warning` issues.
            warnings.filterwarnings("ignore", module=r"(distributed|dask|tornado|asyncio)\b")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
