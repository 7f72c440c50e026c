"""Compares networks with float and with int8 layers around their binary ones, on a machine that other programs share.

Usage:

    python -m bench.zoo.int8 [--runs=N] [--isa=NAME] [MODEL ...]

MODEL is a network of bench/zoo; the default is all. Both conversions take turns in one process on one thread. The
figures are the least CPU time of a run, which other programs change little, and the median.
"""

import argparse
import statistics
import sys
import time

import numpy as np

from bench.zoo import networks
from bench.zoo.convert import convert_network
from litebnn.runtime import Interpreter
from toolchains.command_line import run
from toolchains.targets import ToolkitError


def cpu_times(interpreters: list[Interpreter], runs: int) -> list[list[float]]:
    """The CPU times in seconds of `runs` runs of each interpreter on a random image, taking turns."""
    rng = np.random.default_rng(0)
    image = rng.standard_normal(interpreters[0].input_shapes[0]).astype(np.float32)
    seconds: list[list[float]] = [[] for _ in interpreters]
    for _ in range(runs):
        for times, interpreter in zip(seconds, interpreters, strict=True):
            start = time.thread_time()
            interpreter.predict(image)
            times.append(time.thread_time() - start)
    return seconds


def line(name: str, seconds: list[list[float]]) -> str:
    """Formats a row of the table from the times with float and with int8 layers.

    >>> line("QuickNet", [[0.004, 0.003, 0.009], [0.002, 0.002, 0.006]])
    '| QuickNet | 3.00 | 2.00 | 1.50 | 4.00 | 2.00 | 2.00 |'
    """
    cells = [name]
    for of_float, of_int8 in (map(min, seconds), map(statistics.median, seconds)):
        cells += [f"{1e3 * of_float:.2f}", f"{1e3 * of_int8:.2f}", f"{of_float / of_int8:.2f}"]
    return f"| {' | '.join(cells)} |"


def compare_all(models: list[str], runs: int, isa: str | None) -> None:
    """Converts and measures the networks, and prints a row for each."""
    names = models or networks()
    print("| network, ms of CPU time | least: float | int8 | ratio | median: float | int8 | ratio |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        files = [convert_network(name, int8=int8) for int8 in (False, True)]
        try:
            interpreters = [Interpreter(file, isa=isa) for file in files]
        except ValueError as error:
            raise ToolkitError(str(error)) from error
        print(line(name, cpu_times(interpreters, runs)), flush=True)


def main() -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.zoo.int8", description="Compare float and int8 networks.")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="networks, by default all in build/zoo")
    parser.add_argument("--runs", type=int, default=100, help="runs of each conversion")
    parser.add_argument("--isa", help="instruction set of litebnn, by default the best")
    return run(parser, compare_all, None)


if __name__ == "__main__":
    sys.exit(main())
