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
from typing import Any

import numpy as np

from bench.kernels.__main__ import build, count_network
from litebnn.benchmark import XNNPACK, Contender, measure
from litebnn.contract import Padding
from litebnn.errors import ConversionError
from litebnn.flatbuffer import write_model
from litebnn.graph import Graph, Model, Quantization, Tensor, builtin_op, constant
from toolchains.command_line import run
from toolchains.targets import ToolkitError, find_system_target

# Image size, input and output channels, filter width and stride.
LAYERS = (
    *((224, 3, 64, 7, 2), (224, 3, 32, 5, 2), (224, 3, 64, 11, 4)),
    *((112, 1, 32, 3, 1), (112, 3, 32, 3, 1), (224, 3, 16, 3, 2)),
)


def grid(scales: Any, zero_point: int = 0) -> Quantization:
    """Makes a quantization with these scales, either one for all values or one for each channel."""
    scale = np.atleast_1d(np.asarray(scales, np.float32))
    return Quantization(scale, np.full(scale.shape, zero_point, np.int64))


def convolution(size: int, channels: int, outputs: int, taps: int, stride: int) -> bytes:
    """A network with one int8 CONV_2D of random weights."""
    rng, out = np.random.default_rng(0), -(-size // stride)
    x = Tensor("x", "INT8", (1, size, size, channels), quantization=grid(0.02, -3))
    y = Tensor("y", "INT8", (1, out, out, outputs), quantization=grid(0.05, 5))
    weights = constant("weights", rng.integers(-127, 128, (outputs, taps, taps, channels)).astype(np.int8))
    weights.quantization = grid(rng.uniform(0.5, 1.0, outputs) / (127 * taps))
    bias = constant("bias", rng.integers(-999, 999, outputs).astype(np.int32))
    bias.quantization = grid(0.02 * weights.quantization.scale)
    op = builtin_op(
        "CONV_2D", [x, weights, bias], y, version=3, padding=Padding.SAME, stride_h=stride, stride_w=stride,
        dilation_h_factor=1, dilation_w_factor=1,
    )  # fmt: skip
    graph = Graph("main", [x], [x], [y], [op])
    return write_model(Model([graph], [], [], [], None, None, 3, "bench"))


def time_layer(model: bytes, isa: str, rounds: int) -> tuple[float, float]:
    """The best times of litebnn and of XNNPACK, in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(model)
        try:
            ours, other = measure([Contender(path, isa=isa), Contender(path, XNNPACK)], turns=rounds, runs=1, ops=False)
        except ConversionError as error:
            raise ToolkitError(str(error)) from error
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
        model = convolution(size, channels, outputs, taps, stride)
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
