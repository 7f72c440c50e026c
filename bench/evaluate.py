"""Times `litebnn evaluate` with one process and with several, and prints the speedup.

Usage:

    python -m bench.evaluate [--workers=N] [--seconds=S] [--rounds=N] [MODEL]

MODEL classifies images; the default is QuickNet of bench/zoo. The data set has as many random images as one process
evaluates in S seconds. The runs with one process and with N take turns. Other programs lengthen elapsed times, so
processor times are printed too. If N processes use as much processor time as one, they would be N times as fast on N
free cores.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.zoo import model_file
from litebnn.runtime import Interpreter
from toolchains.command_line import run
from toolchains.targets import ToolkitError

_TRIAL = 50


def make_images(model: Path, seconds: float, path: Path) -> int:
    """Writes a .npz file of as many random images as one process evaluates in `seconds`; returns their number."""
    interpreter = Interpreter(model)
    ((_, *shape),) = interpreter.input_shapes
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (_TRIAL, *shape), np.uint8)
    started = time.process_time()
    interpreter.predict((images / 127.5 - 1).astype(np.float32))
    count = max(_TRIAL, round(_TRIAL * seconds / (time.process_time() - started)))
    classes = interpreter.output_shapes[0][-1]
    repeated = np.resize(images, (count, *shape))
    np.savez(path, images=repeated, labels=rng.integers(0, classes, count))
    return count


def evaluate(model: Path, data: Path, workers: int) -> tuple[tuple[float, float, float], str]:
    """Runs `litebnn evaluate` with `workers` processes. Returns the seconds of the command, of its inferences and of
    processor time, and the results as JSON.
    """
    command = [sys.executable, "-m", "litebnn", "evaluate", str(model), f"--data={data}", f"--workers={workers}"]
    started, before = time.perf_counter(), os.times()
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, cwd=data.parent)
    after = os.times()
    if done.returncode:
        raise ToolkitError(f"{workers} workers: {done.stderr.strip()}")
    found = json.loads(done.stdout)
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    counted = json.dumps([found["samples"], *(found["models"][0][name] for name in ("top_1", "top_5", "confusion"))])
    return (time.perf_counter() - started, found["seconds"], processor), counted


def compare(model: Path | None, workers: int, seconds: float, rounds: int) -> None:
    """Prints how long `litebnn evaluate` takes with one process and with `workers` processes, and the ratios."""
    chosen = (model or model_file("QuickNet", "lce")).absolute()
    with tempfile.TemporaryDirectory(prefix="litebnn") as folder:
        data = Path(folder) / "images.npz"
        print(f"{chosen.name}, {make_images(chosen, seconds, data)} images, {rounds} rounds")
        numbers = (1, workers)
        turns = [{number: evaluate(chosen, data, number) for number in numbers} for _ in range(rounds)]
    if len({counted for turn in turns for _, counted in turn.values()}) != 1:
        raise ToolkitError("the figures differ")
    medians = {
        number: [statistics.median(each) for each in zip(*(turn[number][0] for turn in turns), strict=True)]
        for number in numbers
    }
    for number, (clock, within, processor) in medians.items():
        print(f"  {number} processes: {clock:6.1f} s, evaluating {within:6.1f} s; processor time {processor:6.1f} s")
    clock, within, processor = (one / several for one, several in zip(medians[1], medians[workers], strict=True))
    print(f"  {workers} are {clock:.2f} times as fast as 1, evaluating {within:.2f} times")
    print(f"  with cores of their own they would be {workers * processor:.2f} times as fast, by processor time")


def main() -> int:
    """Runs the command line and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.evaluate", description="Time evaluating on processes.")
    parser.add_argument("model", nargs="?", type=Path, metavar="MODEL")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    return run(parser, compare, None)


if __name__ == "__main__":
    sys.exit(main())
