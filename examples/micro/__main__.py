"""Runs a small network on emulated microcontroller boards, and prints its classes, flash, RAM and instructions.

Usage:

    python -m examples.micro [--network=gestures] [--target=cortex-m4] [--kernels=fast] [--model=mine.tflite]

The command needs the cross compilers and QEMU; `litebnn doctor` says how to install them.
"""

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

import litebnn
from examples.micro.gestures.data import NAMES, made_gestures
from examples.mnist.data import bundled_digits
from litebnn.micro import KERNELS, TARGETS
from litebnn.micro.emit import array_text
from litebnn.micro.program import C_TYPES_OF_DATA
from toolchains.bare_metal import compile_program, run_program
from toolchains.bare_metal.network import section_bytes
from toolchains.targets import ROOT, ToolkitError, find_target

HERE = Path(__file__).parent
OUTPUT = ROOT / "build" / "micro"
FLAGS = ("-O2", "-ffp-contract=off")


class Samples(NamedTuple):
    """Samples for a network: inputs [n, ...] in the type that the network takes, labels [n], and the names of the
    classes."""

    inputs: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    names: tuple[str, ...]


class Network(NamedTuple):
    """The file of a trained network, and a function that makes samples on which the network was not trained."""

    model: Path
    samples: Callable[[], Samples]


def digits() -> Samples:
    """Ten of scikit-learn's handwritten digits, as samples."""
    found = bundled_digits()
    return Samples(found.test_images[:10], found.test_labels[:10], tuple("0123456789"))


def gestures() -> Samples:
    """Twelve gestures, three of each kind, as samples. They are computed, not recorded."""
    made = made_gestures(12, seed=3)
    return Samples(made.traces, made.labels, NAMES)


NETWORKS = {
    "digits": Network(ROOT / "examples" / "label_image" / "digits.tflite", digits),
    "gestures": Network(HERE / "gestures" / "gestures.tflite", gestures),
}


class Result(NamedTuple):
    """The results of running a network on a board."""

    # The name of the board in targets.toml.
    target: str
    # The bytes of code and constants, without the samples.
    flash: int
    # The bytes of static memory and stack, including the input.
    ram: int
    # Instructions that the network executes for one sample.
    instructions: int
    # The class that the network predicts for each sample.
    classes: list[int]


def run_on(target_name: str, model: Path, kernels: str, inputs: npt.NDArray[Any], output: Path) -> Result:
    """Exports a network, compiles it for a board, and runs it there on inputs [n, ...].

    Raises:
        ToolkitError: a compiler or QEMU is missing.
        ConversionError: the model cannot be exported.
    """
    target, folder = find_target(target_name), output / target_name
    output.mkdir(parents=True, exist_ok=True)
    litebnn.export_c(model, folder, name="network", kernels=kernels, target=target_name)
    # The compiled program is written outside the exported files, so that these stay unchanged.
    program = output / f"{target_name}.elf"
    (output / "samples.h").write_text(samples_header(inputs, (folder / "src" / "network.h").read_text()))
    flags = (*FLAGS, f"-I{output}")
    compile_program(target, [HERE / "classify.c"], program, flags, folder / "src")
    printed = run_program(target, program)
    flash, static = section_bytes(target, program)
    found = re.findall(r"^class (\d+) instructions (\d+)$", printed, re.MULTILINE)
    stack = int(printed.rpartition("stack ")[2])
    instructions = max(int(count) for _, count in found)
    return Result(target_name, flash - inputs.nbytes, static + stack, instructions, [int(kind) for kind, _ in found])


def samples_header(inputs: npt.NDArray[Any], network_header: str) -> str:
    """The samples as a C header, with the types of the network's input and output.

    Raises:
        ValueError: the network takes inputs of another shape or type.
    """
    kind, size = C_TYPES_OF_DATA[inputs.dtype], inputs[0].size
    found = re.search(r"run\(const (\w+)\* input, (\w+)\* output\)", network_header)
    if found is None or found[1] != kind or f"NETWORK_INPUT_SIZE = {size}," not in network_header:
        raise ValueError(f"the network takes something else, expected one input of {size} {kind} and one output")
    types = f"typedef {kind} Input;\ntypedef {found[2]} Output;\n"
    return f"{types}enum {{ SAMPLES = {len(inputs)} }};\n{array_text('samples', inputs)}"


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m examples.micro", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--network", choices=NETWORKS, default="digits", help="by default digits")
    parser.add_argument("--target", action="append", choices=TARGETS, help="a board; by default all four")
    parser.add_argument("--kernels", choices=KERNELS, default=KERNELS[0])
    parser.add_argument("--model", type=Path, help="a .tflite file of your own for the same inputs and classes")
    options = parser.parse_args(arguments)
    network = NETWORKS[options.network]
    try:
        samples, model, output = network.samples(), options.model or network.model, OUTPUT / options.network
        names = options.target or TARGETS
        results = [run_on(name, model, options.kernels, samples.inputs, output) for name in names]
    except (ToolkitError, ValueError, OSError, ImportError) as error:
        print(f"micro: {error}", file=sys.stderr)
        return 1
    print(f"labels   {_named(samples.labels, samples.names)}")
    for result in results:
        print(f"classes  {_named(np.array(result.classes), samples.names)}  on {result.target}")
    print_table(options.network, results)
    return 0


def _named(classes: npt.NDArray[Any], names: tuple[str, ...]) -> str:
    return " ".join(names[kind] for kind in classes)


def print_table(network: str, results: list[Result]) -> None:
    """Prints the flash and RAM that the network uses on each board, and the instructions that an inference executes."""
    table = Table(title=f"The {network} network on QEMU's boards; no cycle was measured on silicon")
    for column in ("target", "flash, bytes", "RAM, bytes", "instructions"):
        table.add_column(column, justify="left" if column == "target" else "right")
    for result in results:
        table.add_row(result.target, f"{result.flash:,}", f"{result.ram:,}", f"{result.instructions:,}")
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
