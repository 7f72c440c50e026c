"""Measures the instructions of the runtime's own ops in exported networks, and writes the table of their costs.

Usage:

    python -m bench.micro.builtin [--networks=60]

Random networks run on QEMU's boards. The costs of each function's work are fitted to the instructions of their steps.
The table is `converter/litebnn/micro/builtin_costs.json`. Its functions are those that the networks hold.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy.optimize import nnls

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.micro.estimate import COSTS_FILE, INSTRUCTIONS, work_of
from litebnn.micro.placement import place
from litebnn.micro.settings import TARGETS
from tests.micro import networks
from toolchains.bare.network import run_selftest
from toolchains.targets import find_target

Work = dict[tuple[str, str], float]


def measured(target: str, count: int) -> Iterator[tuple[Work, int]]:
    """The work and the instructions of each step of random networks."""
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(count):
            source = (networks.float_network, networks.int8_network)[seed % 2](1000 + seed)
            litebnn.export_c(source, Path(folder) / "network", target=target)
            run = run_selftest(find_target(target), Path(folder) / "network")
            steps = place(read_model(litebnn.convert_tflite(source)).graphs[0], "compact", target).steps
            for step, instructions in zip(steps, run.steps, strict=True):
                yield dict(work_of(step)), instructions


def fitted(samples: list[tuple[Work, int]]) -> dict[str, dict[str, float]]:
    """The costs of each function's work, none below 0, that come closest to the measured instructions."""
    # Steps of a few instructions are lost in the grain of the boards' timers.
    known = [(work, count) for work, count in samples if count >= 1000]
    names = sorted({name for work, _ in known for name in work if name[1] != INSTRUCTIONS})
    column = {name: index for index, name in enumerate(names)}
    rows = np.zeros((len(known), len(names)))
    for row, (work, count) in zip(rows, known, strict=True):
        for name, amount in work.items():
            if name in column:
                row[column[name]] = amount / count
    rest = [
        1 - sum(amount for name, amount in work.items() if name[1] == INSTRUCTIONS) / count for work, count in known
    ]
    values, _ = nnls(rows, np.array(rest))
    costs: dict[str, dict[str, float]] = {}
    for (function, amount_name), value in zip(names, values.tolist(), strict=True):
        if not function.startswith("litebnn_bconv2d"):
            costs.setdefault(function, {})[amount_name] = round(value, 2)
    return costs


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.micro.builtin", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--networks", type=int, default=60, help="random networks on each board")
    options = parser.parse_args(arguments)
    costs = {target: fitted([*measured(target, options.networks)]) for target in TARGETS}
    COSTS_FILE.write_text(json.dumps(costs, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
