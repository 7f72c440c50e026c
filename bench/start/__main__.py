"""Times models in new processes, from loading the file to the first result, and measures their memory.

MODEL is a network of bench/zoo, QuickNet by default. litebnn runs the network as Larq Compute Engine converted it, and
XNNPACK runs the float file. With --peer, Larq Compute Engine 0.16 runs its own file, with its best options and with its
defaults. The measured time starts after the runtime is imported. The file is in the page cache.

Usage:

    python -m bench.start [--peer] [--turns=N] [MODEL ...]
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

import litebnn.benchmark
from bench.zoo import PEER_PYTHON, model_file
from litebnn.benchmark import LARQ, LARQ_DEFAULT, LITEBNN, XNNPACK
from toolchains.command_line import run
from toolchains.targets import ToolkitError

WORKER = Path(litebnn.benchmark.__file__).with_name("worker.py")


def first_result(runtime: str, name: str) -> dict[str, float]:
    """Runs a model once in a new process; returns `seconds`, `cpu_seconds` and `memory_bytes` to the first result."""
    python = str(PEER_PYTHON) if runtime in (LARQ, LARQ_DEFAULT) else sys.executable
    model = model_file(name, "float" if runtime == XNNPACK else "lce")
    command = [python, str(Path(__file__).with_name("first_result.py")), str(WORKER), runtime, str(model)]
    found = subprocess.run(command, capture_output=True, text=True)
    if found.returncode:
        raise ToolkitError(f"{runtime} does not run {model}: {found.stderr.strip().splitlines()[-1]}")
    figures: dict[str, float] = json.loads(found.stdout)
    return figures


def compare(models: list[str], peer: bool, turns: int) -> None:
    """Prints a line per runtime: median and best time, median CPU time, and median memory."""
    runtimes = [LITEBNN, *([LARQ, LARQ_DEFAULT] if peer else []), XNNPACK]
    for name in models:
        starts = {runtime: [first_result(runtime, name)] for runtime in runtimes}
        for _ in range(1, turns):
            for runtime in runtimes:
                starts[runtime].append(first_result(runtime, name))
        print(f"{name}, {turns} starts each")
        for runtime, found in starts.items():
            columns = {key: [one[key] for one in found] for key in found[0]}
            medians = {key: statistics.median(column) for key, column in columns.items()}
            print(
                f"  {runtime:<28} median {medians['seconds'] * 1e3:7.2f} ms   best {min(columns['seconds']) * 1e3:7.2f}"
                f" ms   CPU {medians['cpu_seconds'] * 1e3:7.2f} ms   {medians['memory_bytes'] / 2**20:6.1f} MiB"
            )


def main() -> int:
    """Runs the command line and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.start", description="Time models up to the first result.")
    parser.add_argument("models", nargs="*", default=["QuickNet"], metavar="MODEL")
    parser.add_argument("--peer", action="store_true", help="run Larq Compute Engine too")
    parser.add_argument("--turns", type=int, default=20)
    return run(parser, compare, None)


if __name__ == "__main__":
    sys.exit(main())
