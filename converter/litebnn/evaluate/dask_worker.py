"""The part that runs in a Dask worker: a plugin that delivers the work once, and the function that a task calls.

Only processes with Dask import this module.
"""

from __future__ import annotations

import threading

from distributed import Worker, WorkerPlugin, get_worker

from litebnn.evaluate.batches import Batch
from litebnn.evaluate.in_process import Work
from litebnn.evaluate.scoring import Result


class Carrier(WorkerPlugin):  # type: ignore[misc]
    """A worker plugin that delivers the work to each worker once, including workers that join later."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def setup(self, worker: Worker) -> None:
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
    """Computes the result of a batch, with the work that the worker's plugin `name` holds."""
    result: Result = get_worker().plugins[name].run(batch)
    return result
