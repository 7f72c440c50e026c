"""Runs one model in one runtime on request, so that several can take turns. `python -m bench.models` starts it.

    python bench/models/worker.py KIND MODEL THREADS

KIND is litebnn or litebnn-ISA (an instruction set that is forced), xnnpack (a float model in LiteRT), lce-default or
lce-best (Larq Compute Engine, which is imported only then). For every line read, a number of seconds, it runs
inferences for so long, three at least, and prints one line of JSON: the seconds of each. An empty line ends it, and
prints the peak memory in bytes.
"""

import importlib.metadata
import importlib.util
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LEAST_RUNS = 3


def _tflite_runner(interpreter: Any) -> Callable[[], None]:
    import numpy as np

    interpreter.allocate_tensors()
    rng = np.random.default_rng(1)
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], rng.standard_normal(detail["shape"]).astype(detail["dtype"]))
    invoke: Callable[[], None] = interpreter.invoke
    return invoke


def _lce_runner(model: bytes, threads: int, best: bool) -> Callable[[], None]:
    import numpy as np

    # Its package imports all of TensorFlow, which would count as its memory, so the module is loaded by its file.
    package = importlib.metadata.distribution("larq-compute-engine")
    file = next(file for file in package.files or [] if "interpreter_wrapper_lite" in file.name)
    spec = importlib.util.spec_from_file_location("interpreter_wrapper_lite", str(package.locate_file(file)))
    assert spec is not None
    assert spec.loader is not None
    interpreter_wrapper_lite: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(interpreter_wrapper_lite)
    interpreter = interpreter_wrapper_lite.LiteInterpreter(model, threads, False, best, best)
    rng = np.random.default_rng(1)
    shapes = zip(interpreter.input_shapes, interpreter.input_types, strict=True)
    inputs = [rng.standard_normal(shape).astype(dtype) for shape, dtype in shapes]
    return lambda: interpreter.predict(inputs)


def make_runner(kind: str, model: Path, threads: int) -> Callable[[], None]:
    if kind.startswith("lce-"):
        return _lce_runner(model.read_bytes(), threads, best=kind == "lce-best")
    from ai_edge_litert.interpreter import Interpreter

    delegates = []
    if kind.startswith("litebnn"):
        import litebnn

        delegates = [litebnn.load_delegate(threads, isa=kind.partition("-")[2] or None)]
    return _tflite_runner(Interpreter(str(model), num_threads=threads, experimental_delegates=delegates))


def main() -> None:
    kind, model, threads = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    run = make_runner(kind, model, threads)
    print("ready", flush=True)
    for line in sys.stdin:
        if not line.strip():
            break
        seconds: list[float] = []
        while len(seconds) < LEAST_RUNS or sum(seconds) < float(line):
            start = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - start)
        print(json.dumps(seconds), flush=True)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, flush=True)


if __name__ == "__main__":
    main()
