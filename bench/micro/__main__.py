"""Counts the instructions of the kernels for microcontrollers, on emulated boards.

Usage:

    python -m bench.micro [--target=cortex-m4] [--write]

The layers have random 3x3 filters, no padding and packed inputs. Their outputs are compared with those of NumPy. The
command prints the instructions for each 32 products, counted over all code from input to output. With `--write` it
measures layers of many shapes instead, and fits each kernel's costs to the counts. It writes the costs, by which the
converter chooses a kernel, to converter/litebnn/micro/costs.json.
"""

import argparse
import json
import sys
from itertools import product

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.micro.cases import OUTPUTS, count, instructions, kernels_of, random_case
from litebnn.files import write_whole
from litebnn.micro.choice import COSTS_FILE, features
from toolchains.command_line import run
from toolchains.targets import Target, ToolkitError, find_target, load_targets

CHANNELS = (32, 64, 128, 256)
# The layers to which the costs are fitted: input channels, output channels and filter size.
SHAPES = [(i, o, size) for i, o, size in product((32, 64, 160), (16, 64, 128, 192), (1, 3)) if i * o * size <= 60000]


def fitted_costs(target: Target) -> dict[str, list[float]]:
    """Fits the costs of each kernel to the instructions that layers of all shapes take."""
    costs = {}
    for kernel in kernels_of(target):
        cases = [
            random_case(kernel, channels, output, 3, channels_out, size)
            for (channels, channels_out, size), output in product(SHAPES, OUTPUTS)
        ]
        outputs = [output for _, output in product(SHAPES, OUTPUTS)]
        rows = np.array(
            [features(case.geometry, kernel, output) for case, output in zip(cases, outputs, strict=True)], np.float64
        )
        pixels = np.array([case.geometry.output_height * case.geometry.output_width for case in cases])
        found = np.array(instructions(target, cases), np.float64) / pixels
        # The fit minimizes the relative errors, so that small layers count as much as large ones.
        solution = np.linalg.lstsq(rows / found[:, None], np.ones(len(found)), rcond=None)[0]
        error = np.abs(rows @ solution / found - 1).max()
        print(f"{target.name}, {kernel}: {len(cases)} layers, at most {error:.0%} off", flush=True)
        costs[kernel] = [round(float(cost), 2) for cost in solution]
    return costs


def measure(target: str, write: bool) -> None:
    """Counts the instructions of one microcontroller, or of all if `target` is empty. Prints the counts or,
    if `write` is true, stores them.
    """
    rows = [find_target(target)] if target else [row for row in load_targets().values() if row.is_bare_metal]
    if write:
        costs = json.loads(COSTS_FILE.read_text(encoding="utf-8")) if target else {}
        costs |= {row.name: fitted_costs(row) for row in rows}
        write_whole(COSTS_FILE, (json.dumps(costs, indent=1) + "\n").encode())
        return
    for row in rows:
        if not row.is_bare_metal:
            raise ToolkitError(f"{row.name} is no microcontroller; expected a row of targets.toml with a machine")
        result = Table(title=f"{row.name}: instructions for 32 products, 3x3")
        for column in ("channels", "output", *kernels_of(row)):
            result.add_column(column, justify="right")
        for channels in CHANNELS:
            found = {
                kernel: count(row, [random_case(kernel, channels, output) for output in OUTPUTS])
                for kernel in kernels_of(row)
            }
            for i, output in enumerate(OUTPUTS):
                result.add_row(str(channels), output, *(f"{counts[i]:.2f}" for counts in found.values()))
        Console().print(result)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.micro", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--target", default="", help="a microcontroller of targets.toml; by default all")
    parser.add_argument("--write", action="store_true", help="write converter/litebnn/micro/costs.json")
    return run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
