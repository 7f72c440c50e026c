"""Times larq-zoo's networks, and compares each with two lower bounds, the floor and the bound.

Usage:

    python -m bench.zoo [--target=NAME] [--isa=NAME] [--rounds=N] [--output=FILE] [MODEL ...]

MODEL is a network of bench/zoo; the default is all. Three runtimes take turns on one thread. XNNPACK runs the float
file. Larq Compute Engine, with its best options, and litebnn run their own conversions.

A second row has the times with int8 layers. Larq Compute Engine and litebnn then run conversions with int8 layers
around the binary ones. XNNPACK runs a file whose layers are all int8. A cell is "–" if a runtime is not installed, or
cannot convert the network.

The floor is the sum of two times. The first is the runtime's time for all layers of litebnn's file that are not binary.
The second is the time of the binary multiply-adds at the speed of the inner loop. In int8 files, litebnn itself
computes the first layer.

The bound adds three costs to the floor (bench/zoo/floor.py). The costs are the outputs of binary layers, the bytes that
other ops move, and reads of dense binary weights from beyond the L2 cache.

For other targets everything but Larq Compute Engine and the bound is counted in an emulator, in millions of
instructions.
"""

import argparse
import datetime
import json
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

from bench.kernels.__main__ import count_network
from bench.models import cpu_name, take_turns
from bench.zoo import PEER_PYTHON, ZOO, model_file, networks
from bench.zoo.convert import convert_network, quantize_network
from bench.zoo.floor import BinaryWork, binary_work, float_layers, inner_loop_instructions, speeds
from litebnn.benchmark import LARQ, XNNPACK, Contender
from toolchains.command_line import run
from toolchains.targets import ToolkitError, find_system_target

Row = dict[str, float]
COLUMNS = ("litebnn", "lce-best", "xnnpack", "floor", "bound")


def prepare(name: str, *, int8: bool = False) -> BinaryWork:
    """Converts a network. Writes its file and a second file with only its float layers, and returns the work of all
    other ops.
    """
    converted = convert_network(name, int8=int8).read_bytes()
    (ZOO / f"{name}.{'int8-' if int8 else ''}floor.tflite").write_bytes(float_layers(converted))
    return binary_work(converted)


def time_network(name: str, isa: str, rounds: int, speed: BinaryWork) -> dict[str, Row]:
    """Measures two rows of the table in median milliseconds: with float layers, and with int8 layers.

    A figure for Larq Compute Engine is missing if it is not installed or cannot convert the network.
    """
    quantize_network(name)
    works = [prepare(name, int8=int8).seconds(speed) for int8 in (False, True)]
    contenders = {
        "litebnn": Contender(model_file(name, "litebnn"), isa=isa),
        "litebnn, int8": Contender(model_file(name, "int8"), isa=isa),
        "lce-best": Contender(ZOO / f"{name}.lce.tflite", LARQ, python=str(PEER_PYTHON)),
        "lce-best, int8": Contender(ZOO / f"{name}.lce-int8.tflite", LARQ, python=str(PEER_PYTHON)),
        "xnnpack": Contender(model_file(name, "float"), XNNPACK),
        "xnnpack, int8": Contender(model_file(name, "quantized"), XNNPACK),
        "floor": Contender(model_file(name, "floor"), XNNPACK),
        "floor, int8": Contender(model_file(name, "int8-floor"), isa=isa),
    }
    for kind in ("lce-best", "lce-best, int8"):
        if not (contenders[kind].model.is_file() and PEER_PYTHON.is_file()):
            del contenders[kind]
    measured = take_turns(list(contenders.values()), rounds)
    medians = {kind: one.median * 1e3 for kind, one in zip(contenders, measured, strict=True)}
    rows: dict[str, Row] = {}
    for suffix, work in zip(("", ", int8"), works, strict=True):
        row: Row = {kind: medians[kind + suffix] for kind in COLUMNS if kind + suffix in medians}
        row["floor"] += work.macs * 1e3
        row["bound"] = row["floor"] + (work.outputs + work.moved + work.weights) * 1e3
        rows[name + suffix] = row
    return rows


def count_zoo_network(name: str, target: str, isa: str, instructions: float) -> dict[str, Row]:
    """Counts the instructions of a network in an emulator, in millions, as two rows of the table. The rows have no
    columns for programs that cannot run in an emulator.

    A figure for XNNPACK is missing if the file has an op that the emulated runtime, which is from 2022, does not know.
    """
    found = find_system_target(target)

    def count(file: str, *, delegated: bool = False) -> float:
        return count_network(found, isa, model_file(name, file).read_bytes(), delegated=delegated) / 1e6

    quantize_network(name)
    rows: dict[str, Row] = {}
    for suffix, file, whole in (("", "litebnn", "float"), (", int8", "int8", "quantized")):
        int8 = file == "int8"
        binary = prepare(name, int8=int8).macs * instructions / 1e6
        ours, layers = count(file, delegated=True), count("int8-floor" if int8 else "floor", delegated=int8)
        rows[name + suffix] = {"litebnn": ours, "floor": layers + binary}
        with suppress(ToolkitError):
            rows[name + suffix]["xnnpack"] = count(whole)
    return rows


def line(name: str, row: Row) -> str:
    """Formats a row of the table.

    >>> line("QuickNet", {"litebnn": 2.0, "xnnpack": 30.0, "floor": 1.6, "bound": 1.8})
    '| QuickNet | 2.00 | – | 30.00 | 1.60 | 1.80 | 1.25 | 1.11 | – | 15.0 |'
    """
    ours = row["litebnn"]
    cells = [f"{row[kind]:.2f}" if kind in row else "–" for kind in COLUMNS]
    cells += [f"{ours / row[kind]:.2f}" if kind in row else "–" for kind in ("floor", "bound")]
    cells += [f"{row[kind] / ours:.1f}" if kind in row else "–" for kind in ("lce-best", "xnnpack")]
    return f"| {name} | {' | '.join(cells)} |"


def measure_all(models: list[str], target: str, isa: str, rounds: int, output: Path | None = None) -> None:
    """Measures the networks, and prints a table that has a row for each network. Writes the rows to `output` as
    JSON."""
    names = models or networks()
    is_here = target == "host"
    unit = "ms" if is_here else "million instructions"
    if is_here:
        rows_of = partial(time_network, isa=isa, rounds=rounds, speed=speeds(isa))
    else:
        instructions = inner_loop_instructions(find_system_target(target), isa)
        rows_of = partial(count_zoo_network, target=target, isa=isa, instructions=instructions)
    ratios = ("litebnn / floor", "litebnn / bound", "lce-best / litebnn", "xnnpack / litebnn")
    print(f"| {unit} | {' | '.join([*COLUMNS, *ratios])} |")
    print("|---" * (1 + len(COLUMNS) + len(ratios)) + "|")
    rows: dict[str, Row] = {}
    for name in names:
        of_network = rows_of(name)
        for title, row in of_network.items():
            print(line(title, row), flush=True)
        rows |= of_network
    if output is not None:
        settings = {"date": datetime.date.today().isoformat(), "cpu": cpu_name() if is_here else target, "unit": unit}
        output.write_text(json.dumps({**settings, "models": rows}, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """Runs the command line and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.zoo", description="Measure networks and their floors.")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="networks, by default all in build/zoo")
    parser.add_argument("--target", default="host", help="a row of toolchains/targets.toml")
    parser.add_argument("--isa", default="", help="litebnn's instruction set, by default the best")
    parser.add_argument("--rounds", type=int, default=15, help="turns of 0.1 s that each takes")
    parser.add_argument("--output", type=Path, help="file that the figures are written to, as JSON")
    return run(parser, measure_all, None)


if __name__ == "__main__":
    sys.exit(main())
