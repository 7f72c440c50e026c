"""Runs one model in one runtime on request, in a process of its own, so that several models can take turns.

Usage: python worker.py KIND MODEL THREADS ISA SHAPES

KIND is litebnn, xnnpack (the runtime without litebnn's delegate), larq-compute-engine or larq-compute-engine-default.
The last two may be installed for another Python, which runs only this file, so their code imports nothing of litebnn.
SHAPES is a JSON list of the inputs' shapes; [] for those of the file.

The first line of stdout reports how the model was loaded. Each line of stdin is a request, which one line answers. All
lines are JSON, and an answer with "error" is the last one.

`["run", seconds]` runs inferences for that time, at least one, and answers with the seconds of each.
`["watch", seconds]` does the same, with each node timed. `["end"]` answers with the peak memory, and each op's share of
a run.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import inspect
import json
import os
import re
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

Run = Callable[[], Any]


def peak_memory() -> int:
    """The peak memory of this process in bytes; 0 if the system is not Linux. getrusage would include the parent's
    memory."""
    status = Path("/proc/self/status")
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text() if status.exists() else "", re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def random_input(shape: Any, dtype: Any) -> Any:
    """A random input: normally distributed floats, uniform 8-bit numbers, and zeros for other types, whose valid values
    are unknown."""
    import numpy as np

    generator = np.random.default_rng(0)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return generator.standard_normal(shape).astype(kind)
    if kind.itemsize == 1 and kind.kind in "iu":
        limits = np.iinfo(kind)
        return generator.integers(limits.min, limits.max, shape, kind, endpoint=True)
    return np.zeros(shape, kind)


class TfliteModel:
    """A model in an installed TensorFlow Lite runtime, with litebnn's delegate or without."""

    def __init__(self, kind: str, model: Path, threads: int, isa: str, shapes: list[list[int]]) -> None:
        from litebnn.runtime import find_runtime

        self._runtime = find_runtime()
        self._delegated, self._content, self._threads, self._isa = kind == "litebnn", b"", threads, isa
        self._model, self._shapes = model, shapes
        self._watched: list[tuple[Any, Run]] = []
        self._runs: list[list[list[float]]] = []

    def load(self) -> Run:
        self._content = self._model.read_bytes()
        return self._loaded()

    def _loaded(self, *more_delegates: Any, **flags: Any) -> Run:
        from litebnn.runtime import load_delegate
        from litebnn.runtime.interpreter import load

        ours = [load_delegate(self._threads, isa=self._isa or None)] if self._delegated else []
        make = partial(self._runtime.Interpreter, model_content=self._content, num_threads=self._threads, **flags)
        interpreter = load(make, [*ours, *more_delegates], self._shapes or None)
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], random_input(detail["shape"], detail["dtype"]))
        run: Run = interpreter.invoke
        return run

    def watch(self, seconds: float) -> None:
        """Times the nodes of the fastest configuration. If the runtime can run each op as a separate node, times
        each op alone, too.
        """
        from litebnn.benchmark.stopwatch import Stopwatch

        if not self._watched:
            alone = "experimental_disable_delegate_node_fusion"
            known = alone in inspect.signature(self._runtime.Interpreter).parameters
            for flags in ({}, {alone: True}) if known else ({},):
                stopwatch = Stopwatch()
                run = self._loaded(stopwatch, **flags)
                stopwatch.start()
                run()
                self._watched.append((stopwatch, run))
                self._runs.append([])
        for (stopwatch, run), runs in zip(self._watched, self._runs, strict=True):
            end = time.perf_counter() + seconds / len(self._watched)
            run()
            while True:
                start = time.perf_counter()
                run()
                whole = time.perf_counter() - start
                runs.append([*stopwatch.seconds(), stopwatch.seconds_between(whole)])
                if time.perf_counter() >= end:
                    break

    def ops(self) -> list[tuple[tuple[int, ...], float]]:
        """The share of a run that each op takes; ops that cannot run separately share one entry."""
        from litebnn.benchmark.stopwatch import middle_means, times_of_ops

        means = [middle_means(runs) for runs in self._runs]
        found = [
            dict(zip(stopwatch.nodes, seconds[:-1], strict=True))
            for (stopwatch, _), seconds in zip(self._watched, means, strict=True)
        ]
        if not found:
            return []
        (nodes, alone), whole = [*found, {}][:2], sum(means[0])
        return [(ops, seconds / whole if whole else 0.0) for ops, seconds in sorted(times_of_ops(nodes, alone).items())]


class LarqModel:
    """A model in Larq Compute Engine's own runtime."""

    def __init__(self, kind: str, model: Path, threads: int) -> None:
        # The module of Larq Compute Engine's interpreter is loaded directly from its file. An import of its package
        # would also import TensorFlow, whose memory would be counted.
        package = importlib.metadata.distribution("larq-compute-engine")
        file = next(file for file in package.files or [] if "interpreter_wrapper_lite" in file.name)
        spec = importlib.util.spec_from_file_location("interpreter_wrapper_lite", str(package.locate_file(file)))
        assert spec is not None
        assert spec.loader is not None
        self._wrapper: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self._wrapper)
        self._model, self._threads, self._fastest = model, threads, kind == "larq-compute-engine"

    def load(self) -> Run:
        # The last two arguments of LiteInterpreter turn on indirect kernels and XNNPACK.
        choices = self._threads, False, self._fastest, self._fastest
        interpreter = self._wrapper.LiteInterpreter(self._model.read_bytes(), *choices)
        shapes = zip(interpreter.input_shapes, interpreter.input_types, strict=True)
        inputs = [random_input(shape, dtype) for shape, dtype in shapes]
        return lambda: interpreter.predict(inputs)


def serve(
    kind: str, model: Path, threads: int, isa: str, shapes: list[list[int]], answer: Callable[[Any], None]
) -> None:
    """Loads a model and answers the requests on stdin."""
    import numpy as np

    is_larq = kind.startswith("larq-compute-engine")
    loader = LarqModel(kind, model, threads) if is_larq else TfliteModel(kind, model, threads, isa, shapes)
    np.random.default_rng(0)  # imports the random generators before memory is measured
    before, start = peak_memory(), time.perf_counter()
    run = loader.load()
    loaded = time.perf_counter() - start
    run()
    answer({"load_seconds": loaded})
    memory: dict[str, int] = {}
    for line in sys.stdin:
        request, *arguments = json.loads(line)
        if request == "run":
            answer(timed(run, *arguments))
            # The peak memory is recorded only once, at the first request, because timing the nodes needs more memory
            # later.
            memory = memory or {"peak_memory_bytes": peak_memory(), "model_memory_bytes": peak_memory() - before}
        elif request == "watch" and isinstance(loader, TfliteModel):
            loader.watch(*arguments)
            answer(None)
        else:
            answer({**memory, "ops": loader.ops() if isinstance(loader, TfliteModel) else []})
            break


def timed(run: Run, seconds: float) -> list[float]:
    """Runs the model for `seconds`, at least once, and returns the duration of each run."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times


def main() -> None:
    """Runs the command line."""
    kind, model, threads, isa, shapes = sys.argv[1:]
    # A runtime's own output must not mix with the answers on stdout, so stdout is redirected.
    with os.fdopen(os.dup(1), "w") as out, Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)

        def answer(value: Any) -> None:
            print(json.dumps(value), file=out, flush=True)

        try:
            serve(kind, Path(model), int(threads), isa, json.loads(shapes), answer)
        except Exception as error:
            answer({"error": " ".join(str(error).split()) or type(error).__name__})


if __name__ == "__main__":
    main()
