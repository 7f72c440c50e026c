"""Runs the digits network on emulated boards: digits in, classes out, and a table of what it takes.

    python -m examples.micro_digits [--target=cortex-m4] [--kernels=fast] [--model=digits.tflite]

It needs the cross compilers and QEMU; `litebnn doctor` says how to install them.
"""

import argparse
import re
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

import litebnn
from examples.mnist.data import bundled_digits
from litebnn.micro.emit import array_text
from litebnn.micro.settings import KERNELS, TARGETS
from toolchains.bare import compile_program, run_program
from toolchains.bare.network import section_bytes
from toolchains.targets import ROOT, ToolkitError, find_target

HERE = Path(__file__).parent
MODEL = ROOT / "examples" / "label_image" / "digits.tflite"
OUTPUT = ROOT / "build" / "micro_digits"
IMAGES = 10
FLAGS = ("-O2", "-ffp-contract=off")


class Result(NamedTuple):
    """The network on a board."""

    # The name of the board's row in targets.toml.
    target: str
    # Bytes of code and constants, without the images.
    flash: int
    # Bytes of static memory and of stack, with the input.
    ram: int
    # The instructions for one digit.
    instructions: int
    # The class of each image.
    classes: list[int]


def run_on(target_name: str, model: Path, kernels: str, images: npt.NDArray[np.float32], output: Path) -> Result:
    """Exports the network, compiles it for a board and runs it there on images.

    Raises:
        ToolkitError: a compiler or QEMU is missing.
        ConversionError: the model cannot be exported.
    """
    target, folder = find_target(target_name), output / target_name
    output.mkdir(parents=True, exist_ok=True)
    litebnn.export_c(model, folder, name="digits", kernels=kernels, target=target_name)
    # The program is no part of the exported files, which stay as they are.
    program = output / f"{target_name}.elf"
    (output / "images.h").write_text(f"enum {{ IMAGES = {len(images)} }};\n{array_text('images', images)}")
    flags = (*FLAGS, f"-I{output}")
    compile_program(target, [HERE / "digits_main.c"], program, flags, folder / "src")
    printed = run_program(target, program)
    flash, static = section_bytes(target, program)
    found = re.findall(r"^class (\d+) instructions (\d+)$", printed, re.MULTILINE)
    stack = int(printed.rpartition("stack ")[2])
    instructions = max(int(count) for _, count in found)
    return Result(target_name, flash - images.nbytes, static + stack, instructions, [int(kind) for kind, _ in found])


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.micro_digits", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--target", action="append", choices=TARGETS, help="a board; by default all four")
    parser.add_argument("--kernels", choices=KERNELS, default=KERNELS[0])
    parser.add_argument("--model", type=Path, default=MODEL, help="a network of 28x28 digits as a .tflite file")
    options = parser.parse_args(arguments)
    try:
        digits = bundled_digits()
        images, labels = digits.test_images[:IMAGES], digits.test_labels[:IMAGES]
        results = [run_on(name, options.model, options.kernels, images, OUTPUT) for name in options.target or TARGETS]
    except (ToolkitError, ValueError, OSError, ImportError) as error:
        print(f"micro_digits: {error}", file=sys.stderr)
        return 1
    print(f"digits   {' '.join(map(str, labels))}")
    for result in results:
        print(f"classes  {' '.join(map(str, result.classes))}  on {result.target}")
    print_table(results)
    return 0


def print_table(results: list[Result]) -> None:
    """Prints flash, RAM and instructions of each board."""
    table = Table(title="The digits network on QEMU's boards; no cycle was measured on silicon")
    for column in ("target", "flash, bytes", "RAM, bytes", "instructions"):
        table.add_column(column, justify="left" if column == "target" else "right")
    for result in results:
        table.add_row(result.target, f"{result.flash:,}", f"{result.ram:,}", f"{result.instructions:,}")
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
