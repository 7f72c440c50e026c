"""What a worker of Dask's has: the work, brought once, and what a task calls. Only Dask's side imports this module."""

from __future__ import annotations

import threading

from distributed import Worker, WorkerPlugin, get_worker

from litebnn.evaluate.batches import Batch
from litebnn.evaluate.plain_loop import Work
from litebnn.evaluate.scoring import Result


class Carrier(WorkerPlugin):  # type: ignore[misc]
    """Brings the work to each worker once, also to one that joins later."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def setup(self, worker: Worker) -> None:
        # Interpreters must not be shared by the threads of a worker.
        self._threads = threading.local()

    def run(self, batch: Batch) -> Result:
        """The result of a batch; what the user has to mend comes back instead of being raised and tried again."""
        try:
            if not hasattr(self._threads, "function"):
                self._threads.function = self._work.prepared()
            result: Result = self._threads.function(batch)
        except (ValueError, ImportError) as error:
            return {"error": " ".join(str(error).split())}
        return result


def run_task(name: str, batch: Batch) -> Result:
    """The result of a batch, by the work of that name."""
    result: Result = get_worker().plugins[name].run(batch)
    return result
