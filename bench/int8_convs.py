"""Times the int8 convolutions that litebnn computes, in turns with XNNPACK.

Usage:

    python -m bench.int8_convs [--target=NAME] [--isa=NAME] [--rounds=N] [--layer=SIZE,IN,OUT,FILTER,STRIDE]

Each network is one CONV_2D with SAME padding on an image. With another target, instructions of one inference are
counted in an emulator instead. The option --layer replaces the shapes by another one.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from bench.costs.chain import Chain
from bench.kernels.__main__ import build, count_network
from bench.models import take_turns
from litebnn.benchmark import XNNPACK, Contender
from toolchains.command_line import run
from toolchains.targets import find_system_target

# Image size, input and output channels, filter width and stride.
LAYERS = (
    *((224, 3, 64, 7, 2), (224, 3, 32, 5, 2), (224, 3, 64, 11, 4)),
    *((112, 1, 32, 3, 1), (112, 3, 32, 3, 1), (224, 3, 16, 3, 2)),
)


def time_layer(model: bytes, isa: str, rounds: int) -> tuple[float, float]:
    """The best times of litebnn and of XNNPACK, in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(model)
        ours, other = take_turns([Contender(path, isa=isa), Contender(path, XNNPACK)], rounds)
    return ours.best * 1e3, other.best * 1e3


def compare(target: str, isa: str, rounds: int, layer: str) -> None:
    """Prints a table with a row for each layer."""
    layers = [tuple(int(number) for number in layer.split(","))] if layer else LAYERS
    is_here, row = target == "host", find_system_target(target)
    if not is_here:
        build(row)
    unit = "ms" if is_here else "million instructions"
    print(f"| filter / stride, channels, image | litebnn, {unit} | XNNPACK | ratio |")
    print("|---|---|---|---|")
    for size, channels, outputs, taps, stride in layers:
        model = Chain(1, size, size, channels, type="INT8").conv(outputs, taps, stride).bytes()
        if is_here:
            ours, other = time_layer(model, isa, rounds)
        else:
            ours, other = (count_network(row, isa, model, delegated=by_us) / 1e6 for by_us in (True, False))
        name = f"{taps}×{taps} / {stride}, {channels} to {outputs}, {size}×{size}"
        print(f"| {name} | {ours:.3f} | {other:.3f} | {other / ours:.2f} |", flush=True)


def main() -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.int8_convs", description="Time int8 convolutions.")
    parser.add_argument("--target", default="host", help="a row of toolchains/targets.toml")
    parser.add_argument("--isa", default="", help="litebnn's instruction set")
    parser.add_argument("--rounds", type=int, default=15, help="turns of 0.1 s that each takes")
    parser.add_argument("--layer", default="", help="size, input and output channels, filter width, stride")
    return run(parser, compare, None)


if __name__ == "__main__":
    sys.exit(main())
