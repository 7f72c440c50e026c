"""Times networks one by one on this machine, each run after what leaves its weights out of the core's own caches.

That is how a layer finds them in a network; what the layer before has written it finds in them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from litebnn.runtime.delegate import load_delegate
from litebnn.runtime.find import find_runtime

# As much as a core's own caches hold, twice.
_OTHER_DATA = np.ones(1 << 20, np.float32)
_SECONDS_OF_A_TURN, _MOST_RUNS = 0.012, 30


def measure(
    networks: Mapping[str, bytes], isas: Mapping[str, str | None], passes: int, least_runs: int = 4
) -> dict[tuple[str, str], float]:
    """Seconds of one inference by network and ISA, on one thread: the least of all runs of `passes` turns.

    The ISAs have what the library is told by their names: None for the one that it chooses by itself, which leaves
    layers to another, as one that is named does not.

    It is the thread's own time, without what other programs took; what they leave in the caches is in it, but for the
    run that they disturbed least.
    """
    best: dict[tuple[str, str], float] = {}
    for _ in range(passes):
        for name, model in networks.items():
            for isa, told in isas.items():
                seconds = _turn(model, told, least_runs)
                best[name, isa] = min(best.get((name, isa), seconds), seconds)
    return best


def _turn(model: bytes, isa: str | None, least_runs: int) -> float:
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
