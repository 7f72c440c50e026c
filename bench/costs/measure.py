"""Times networks one by one on this machine. Before each run, other data displaces their weights from the core's
caches.

A layer inside a large network finds the caches in this state: they hold its input, but no longer its weights.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from litebnn.runtime.delegate import load_delegate
from litebnn.runtime.find import find_runtime

# An array that is summed before each run, so that it displaces other data from the caches. It is twice as large as the
# caches of one core.
_OTHER_DATA = np.ones(1 << 20, np.float32)
_SECONDS_OF_A_TURN, _MOST_RUNS = 0.012, 30


def measure(
    networks: Mapping[str, bytes], isas: Mapping[str, str | None], passes: int, least_runs: int = 4
) -> dict[tuple[str, str], float]:
    """Measures the shortest time of an inference on one thread in seconds, for each network and ISA, over `passes`
    turns.

    The values of `isas` are values of the library's option `isa`. None stands for the library's own choice, which may
    delegate layers to another ISA.

    The times are the thread's own CPU time. Other programs can still lengthen it through the shared caches, so the
    shortest of all runs counts.
    """
    best: dict[tuple[str, str], float] = {}
    for _ in range(passes):
        for name, model in networks.items():
            for isa, isa_option in isas.items():
                seconds = _best_seconds(model, isa_option, least_runs)
                best[name, isa] = min(best.get((name, isa), seconds), seconds)
    return best


def _best_seconds(model: bytes, isa: str | None, least_runs: int) -> float:
    runtime = find_runtime()
    interpreter = runtime.Interpreter(
        model_content=model, num_threads=1, experimental_delegates=[load_delegate(1, isa=isa)]
    )
    interpreter.allocate_tensors()
    rng = np.random.default_rng(0)
    for detail in interpreter.get_input_details():
        values = rng.standard_normal(detail["shape"]) * 40
        interpreter.set_tensor(detail["index"], values.astype(detail["dtype"]))
    interpreter.invoke()
    seconds: list[float] = []
    while len(seconds) < least_runs or (sum(seconds) < _SECONDS_OF_A_TURN and len(seconds) < _MOST_RUNS):
        _OTHER_DATA.sum()
        start = time.thread_time()
        interpreter.invoke()
        seconds.append(time.thread_time() - start)
    return min(seconds)
