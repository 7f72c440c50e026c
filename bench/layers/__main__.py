"""Times binary imitations of layers that have no binary op, in turns with XNNPACK's float ops.

Transposed convolutions of signs are timed as litebnn converts them, including the packing of their input. litebnn has
no binary depthwise convolution. In its place, the program times ops that compute as many results from as few bits.
Their times are lower bounds. For float results this op is a 1×1 LceBconv2d of 32 channels, for signs an LceBMaxPool2d
with the same window.

Usage:

    python -m bench.layers [--threads=N] [--rounds=N]
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from litebnn.contract import BITS_PER_WORD, LCE_BMAXPOOL_2D, BConv2DOptions, BMaxPool2DOptions, Padding
from litebnn.convert import convert_tflite
from litebnn.flatbuffer import write_model
from litebnn.graph import Graph, Model, Tensor, builtin_op, constant, like, packed_words
from litebnn.rules.build.bconv import bconv_of
from litebnn.rules.build.ops import custom_op
from litebnn.runtime import Interpreter
from toolchains.command_line import run

# Transposed convolutions in decoders of U-Nets, GANs and segmentation networks: image size, input and output channels,
# filter width and stride.
TRANSPOSED = (
    *((8, 512, 256, 2, 2), (16, 256, 128, 2, 2), (32, 128, 64, 2, 2), (64, 64, 32, 2, 2)),
    *((7, 256, 256, 3, 2), (14, 256, 128, 3, 2), (28, 128, 64, 3, 2), (56, 64, 64, 3, 2)),
    *((8, 256, 256, 4, 2), (16, 256, 128, 4, 2), (32, 128, 64, 4, 2), (64, 64, 32, 4, 2), (16, 64, 21, 8, 4)),
)
# MobileNet's depthwise layers: image size and channels.
DEPTHWISE = ((112, 32), (56, 128), (28, 256), (14, 512), (7, 1024))


def model_of(graph: Graph, x: Tensor, y: Tensor) -> bytes:
    """The .tflite file of a graph with the input `x` and the output `y`."""
    graph.tensors, graph.inputs, graph.outputs = [x], [x], [y]  # buffer 0 of a file stands for no data
    return write_model(Model([graph], [], [], [], None, None, 3, "bench"))


def signs(rng: np.random.Generator, *shape: int) -> Any:
    return rng.choice([-1.0, 1.0], shape).astype(np.float32)


def sign(graph: Graph, x: Tensor) -> Tensor:
    """Adds a sign function to the graph, with the ops that exporters write: GREATER_EQUAL and SELECT_V2."""
    truth, result = like(x, "truth", type="BOOL"), like(x, "sign")
    zero, one, minus = (constant(f"c{value}", np.array(value, np.float32)) for value in (0, 1, -1))
    graph.insert(builtin_op("GREATER_EQUAL", [x, zero], truth))
    graph.insert(builtin_op("SELECT_V2", [truth, one, minus], result))
    return result


def transposed(size: int, channels: int, outputs: int, taps: int, stride: int, of_signs: bool) -> bytes:
    """A network with a float TRANSPOSE_CONV with SAME padding. Its operand is the network's input or, if `of_signs`,
    the input's signs."""
    rng = np.random.default_rng(0)
    graph, shape = Graph("main", [], [], [], []), (1, size * stride, size * stride, outputs)
    x, y = Tensor("x", "FLOAT32", (1, size, size, channels)), Tensor("y", "FLOAT32", shape)
    weights = constant("weights", signs(rng, outputs, taps, taps, channels))
    inputs = [constant("shape", np.array(shape, np.int32)), weights, sign(graph, x) if of_signs else x]
    bias = constant("bias", np.zeros(outputs, np.float32))
    graph.insert(
        builtin_op(
            "TRANSPOSE_CONV", [*inputs, bias], y, version=3, padding=Padding.SAME, stride_h=stride, stride_w=stride
        )
    )
    return model_of(graph, x, y)


def depthwise(size: int, channels: int) -> bytes:
    """A network with a float 3×3 DEPTHWISE_CONV_2D."""
    graph, shape = Graph("main", [], [], [], []), (1, size, size, channels)
    x, y = Tensor("x", "FLOAT32", shape), Tensor("y", "FLOAT32", shape)
    weights = constant("weights", signs(np.random.default_rng(0), 1, 3, 3, channels))
    inputs = [x, weights, constant("bias", np.zeros(channels, np.float32))]
    graph.insert(builtin_op("DEPTHWISE_CONV_2D", inputs, y, padding=Padding.SAME, depth_multiplier=1))
    return model_of(graph, x, y)


def bits_to_floats(size: int, channels: int) -> bytes:
    """A network with a 1×1 LceBconv2d of 32 input channels."""
    rng = np.random.default_rng(0)
    x, y = Tensor("x", "INT32", (1, size, size, 1)), Tensor("y", "FLOAT32", (1, size, size, channels))
    minus_one = rng.random((channels, 1, 1, BITS_PER_WORD)) < 0.5
    ones, zeros = np.ones(channels, np.float32), np.zeros(channels, np.float32)
    graph = Graph("main", [], [], [], [])
    graph.insert(bconv_of(x, y, "filter", minus_one, ones, zeros, BConv2DOptions(BITS_PER_WORD)))
    return model_of(graph, x, y)


def bits_to_bits(size: int, channels: int) -> bytes:
    """Builds a network with one 3×3 LceBMaxPool2d."""
    x = Tensor("x", "INT32", (1, size, size, packed_words(channels)))
    y, graph = like(x, "y"), Graph("main", [], [], [], [])
    graph.insert(custom_op(LCE_BMAXPOOL_2D, [x], y, BMaxPool2DOptions(Padding.SAME, 1, 1, 3, 3)))
    return model_of(graph, x, y)


def runner(model: bytes, threads: int) -> Callable[[], Any]:
    """Returns a function that runs the model once on random input."""
    interpreter = Interpreter(model, num_threads=threads)
    [shape], [dtype] = interpreter.input_shapes, interpreter.input_types
    rng = np.random.default_rng(0)
    x = signs(rng, *shape) if dtype == np.float32 else rng.integers(-(2**31), 2**31, shape).astype(np.int32)
    interpreter.predict(x)
    return lambda: interpreter.predict(x)


def compare(title: str, models: dict[str, bytes], threads: int, rounds: int) -> None:
    """Prints a line with the median time of each model, and the ratio of the first model's time to each other
    model's."""
    runs = {name: runner(model, threads) for name, model in models.items()}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, once in runs.items():
            started = time.perf_counter()
            once()
            seconds[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    (first, longest), *others = medians.items()
    ratios = (f"{name} {median * 1e6:8.1f} us ({longest / median:4.1f} times)" for name, median in others)
    print(f"  {title:<30} {first} {longest * 1e6:8.1f} us   {'   '.join(ratios)}", flush=True)


def compare_all(threads: int, rounds: int) -> None:
    """Compares transposed and depthwise convolutions."""
    print("TRANSPOSE_CONV, SAME")
    for size, channels, outputs, taps, stride in TRANSPOSED:
        plain, of_signs = (transposed(size, channels, outputs, taps, stride, each) for each in (False, True))
        title = f"{size}x{size}x{channels} -> {outputs}, {taps}x{taps} / {stride}"
        compare(title, {"float": plain, "binary": convert_tflite(of_signs)}, threads, rounds)
    print("DEPTHWISE_CONV_2D 3x3, and what bounds it on bits")
    for size, channels in DEPTHWISE:
        models = {
            "float": depthwise(size, channels),
            "to floats": bits_to_floats(size, channels),
            "to bits": bits_to_bits(size, channels),
        }
        compare(f"{size}x{size}x{channels}", models, threads, rounds)


def main() -> int:
    """Runs the command line and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.layers", description="Time layers that bits imitate.")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=101)
    return run(parser, compare_all, None)


if __name__ == "__main__":
    sys.exit(main())
