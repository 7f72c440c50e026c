"""Counts the instructions of the kernels for microcontrollers, on emulated boards.

    python -m bench.micro [--target=cortex-m4]

Layers of 3x3 without padding, from packed input, are random; their outputs are compared with plain sums. Printed are
instructions for each 32 products, of all code from input to output.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.micro.source import Array, Case, program_source
from litebnn.micro.pack import KERNELS, Geometry, pack_bconv2d, words_of
from toolchains.bare import compile_program, run_program
from toolchains.command_line import run
from toolchains.targets import Target, ToolkitError, find_target, load_targets

CHANNELS = (32, 64, 128, 256)
OUTPUTS = ("bits", "int8", "float32")
SIDE = 4


def random_case(kernel: str, channels: int, output: str, side: int = SIDE) -> Case:
    """A layer of 3x3 with as many inputs as outputs, and `side` x `side` output pixels."""
    rng = np.random.default_rng(channels)
    pixels = rng.integers(0, 2, (side + 2, side + 2, channels), np.uint8)
    weights = rng.integers(0, 2, (channels, 3, 3, channels), np.uint8)
    inputs, filters = (1 - 2 * bits.astype(np.int32) for bits in (pixels, weights))
    taps = [(y, x) for y in range(3) for x in range(3)]
    products = [inputs[y : y + side, x : x + side] @ filters[:, y, x].T for y, x in taps]
    dots = np.sum(products, axis=0)
    depth = 9 * channels
    geometry = Geometry(side + 2, side + 2, channels, side, side, channels, filter_height=3, filter_width=3)
    words = words_of(pixels)
    if output == "bits":
        thresholds = rng.integers(depth // 2 - 8, depth // 2 + 8, channels)
        expected = words_of((depth - dots) // 2 > thresholds)
        return Case(kernel, geometry, pack_bconv2d(kernel, geometry, words_of(weights), thresholds), words, expected)
    multiplier = rng.normal(0, 60 / depth**0.5, channels).astype(np.float32)
    bias = rng.normal(0, 10, channels).astype(np.float32)
    packed = pack_bconv2d(kernel, geometry, words_of(weights), None)
    values: Array = dots.astype(np.float32) * multiplier + bias
    if output == "int8":
        values = np.clip(values, np.float32(-128), np.float32(127))
        half = np.nextafter(np.float32(0.5), np.float32(0))
        values = np.trunc(values + np.where(values < 0, -half, half)).astype(np.int8)
    return Case(kernel, geometry, packed, words, values, multiplier, bias)


def products_of(case: Case) -> int:
    """The number of products of a case."""
    g = case.geometry
    return g.output_height * g.output_width * g.channels_out * g.depth


def kernels_of(target: Target) -> list[str]:
    """The kernels that a target's CPU runs."""
    return [name for name in KERNELS if name != "helium" or "m55" in target.name]


def count(target: Target, cases: list[Case], flags: tuple[str, ...] = ("-O2",)) -> list[float]:
    """Instructions for each 32 products of the cases, run on the target's board.

    Raises:
        ToolkitError: the compiler or QEMU is missing, or an output is wrong.
    """
    with TemporaryDirectory() as folder:
        source = Path(folder) / "cases.c"
        source.write_text(program_source(cases), encoding="utf-8")
        program = compile_program(target, [source], source.with_suffix(".elf"), flags)
        lines = [line.split() for line in run_program(target, program).splitlines()]
    return [int(words[-2]) / (products_of(case) / 32) for words, case in zip(lines, cases, strict=True)]


def print_counts(target: str) -> None:
    """Prints the table of one target, or of all microcontrollers."""
    rows = [find_target(target)] if target else [row for row in load_targets().values() if row.is_bare]
    for row in rows:
        if not row.is_bare:
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
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.micro", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--target", default="", help="a microcontroller of targets.toml; by default all")
    return run(parser, print_counts, arguments)


if __name__ == "__main__":
    sys.exit(main())
