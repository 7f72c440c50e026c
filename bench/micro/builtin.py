"""Measures the instructions of the C runtime's built-in ops in exported networks, and writes the table of their costs.

Usage:

    python -m bench.micro.builtin [--networks=60]

The command runs random networks on QEMU's boards, and networks of ops that random ones seldom contain. It fits the
costs of each function's work to the instructions of the networks' ops, and writes them to
`converter/litebnn/micro/builtin_costs.json`. Functions that no network calls keep their costs.
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
from litebnn.micro.estimate import COSTS_FILE, INSTRUCTIONS, builtin_costs, work_of
from litebnn.micro.placement import place
from tests.micro import networks
from toolchains.bare_metal.network import run_selftest
from toolchains.targets import find_target

# Input sizes (height, channels) of additional networks, which have the ops that random networks seldom contain.
SIZES = ((3, 8), (7, 40), (12, 100))
Work = dict[tuple[str, str], float]


def measured(target: str, count: int) -> Iterator[tuple[Work, int]]:
    """Yields the work and the instructions of each op of all networks, of which `count` are random."""
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sources = [network for size in SIZES for network in networks.rare_networks(*size)]
        sources += [(networks.float_network, networks.int8_network)[seed % 2](1000 + seed) for seed in range(count)]
        for source in sources:
            litebnn.export_c(source, Path(folder) / "network", target=target)
            run = run_selftest(find_target(target), Path(folder) / "network")
            steps = place(read_model(litebnn.convert_tflite(source)), "compact", target).steps
            for step, instructions in zip(steps, run.steps, strict=True):
                yield dict(work_of(step)), instructions


def fitted(samples: list[tuple[Work, int]]) -> dict[str, dict[str, float]]:
    """Fits the costs of each function's work, which are 0 or more, to the measured instructions."""
    # A sample with few instructions is left out, because the boards' timers are too coarse for it.
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
    """Runs the command line and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.micro.builtin", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--networks", type=int, default=60, help="random networks on each board")
    options = parser.parse_args(arguments)
    costs = {
        target: {**known, **fitted([*measured(target, options.networks)])} for target, known in builtin_costs().items()
    }
    COSTS_FILE.write_text(json.dumps(costs, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
