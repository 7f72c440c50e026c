"""Runs a model once, and prints its time and memory as JSON.

Usage:

    python first_result.py WORKER KIND MODEL

WORKER is the path of litebnn/benchmark/worker.py, which loads models in each runtime. WORKER is a path, because the
Python that runs this program may lack litebnn. The measured time starts after the runtime and NumPy are imported.
"""

import json
import os
import runpy
import sys
import time
from pathlib import Path


def main() -> None:
    file, kind, model = sys.argv[1:]
    worker = runpy.run_path(file)
    is_larq = kind.startswith("larq-compute-engine")
    loader = (
        worker["LarqModel"](kind, Path(model), 1) if is_larq else worker["TfliteModel"](kind, Path(model), 1, "", [])
    )
    worker["random_input"]((1,), "float32")  # imports the modules that make inputs before time starts
    # The runtime's own messages are sent to stderr, so that stdout has only the result.
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)
        before, start, start_cpu = worker["peak_memory"](), time.perf_counter(), time.process_time()
        loader.load()()
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_cpu
        memory = worker["peak_memory"]() - before
        print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "memory_bytes": memory}), file=out)


if __name__ == "__main__":
    main()
