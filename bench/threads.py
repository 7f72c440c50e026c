"""Times models with one thread and with several, and prints the gain. Repeats the measurement while another process is
busy.

Usage:

    python -m bench.threads [--threads=N] [--turns=N] [MODEL ...]

MODEL is a `.tflite` file. The defaults are the digits network of the examples, which takes some microseconds, and
QuickNet of bench/zoo. All measurements take turns of a tenth of a second, so that a change of the machine's speed
affects all alike. The machine should be otherwise idle, and have as many cores as there are threads. The runtime's own
ops use as many threads as litebnn's.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.models import take_turns
from bench.zoo import model_file
from litebnn.benchmark import Contender, Measurement
from toolchains.command_line import run
from toolchains.targets import ROOT

DIGITS = ROOT / "examples" / "label_image" / "digits.tflite"


@contextmanager
def busy_process() -> Iterator[None]:
    """A context manager that runs a second process, which keeps a core busy until the context ends."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def print_table(title: str, measured: list[Measurement]) -> None:
    """Prints a line for each measurement, with its ratio to the same model's time on one thread."""
    print(title)
    alone = {one.contender.model: one for one in reversed(measured) if one.contender.threads == 1}
    for one in measured:
        first = alone[one.contender.model]
        print(
            f"  {one.contender.model.name:<24} {one.contender.threads} threads   "
            f"median {one.median * 1e6:9.1f} us ({one.median / first.median:5.2f})   "
            f"p99 {one.percentiles[99] * 1e6:9.1f} us ({one.percentiles[99] / first.percentiles[99]:5.2f})   "
            f"best {one.best * 1e6:9.1f} us ({one.best / first.best:5.2f})   {one.runs} runs"
        )


def compare(models: list[Path], threads: int, turns: int) -> None:
    """Measures and prints two tables: one while nothing else runs, and one while another process is busy."""
    files = models or [DIGITS, model_file("QuickNet", "lce")]
    contenders = [Contender(file, threads=count) for file in files for count in (1, threads)]
    print_table("nothing else runs", take_turns(contenders, turns))
    with busy_process():
        measured = take_turns(contenders, turns)
    print_table("beside a busy process", measured)


def main() -> int:
    """Runs the command line and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.threads", description="Time models by number of threads.")
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=50)
    return run(parser, compare, None)


if __name__ == "__main__":
    sys.exit(main())
