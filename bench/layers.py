"""Times binary imitations of layers that have no binary op, in turns with XNNPACK's float ops.

Transposed convolutions of signs are timed as litebnn converts them, including the packing of their input. litebnn has
no binary depthwise convolution. In its place, the program times ops that compute as many results from as few bits.
Their times are lower bounds. For float results this op is a 1×1 LceBconv2d of 32 channels, for signs an LceBMaxPool2d
with the same window.

Usage:

    python -m bench.layers [--threads=N] [--rounds=N]
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

from bench.costs.chain import RNG, Chain
from bench.models import take_turns
from litebnn.benchmark import Contender
from litebnn.contract import BITS_PER_WORD, Padding
from litebnn.convert import convert_tflite
from litebnn.graph import Tensor, constant, packed_words
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


def transposed(size: int, channels: int, outputs: int, taps: int, stride: int, of_signs: bool) -> bytes:
    """A network with a float TRANSPOSE_CONV with SAME padding. Its operand is the network's input or, if `of_signs`,
    the input's signs, as exporters write them: GREATER_EQUAL and SELECT_V2."""
    chain, shape = Chain(1, size, size, channels), (1, size * stride, size * stride, outputs)
    if of_signs:
        zero, one, minus = (constant(f"c{value}", np.array(value, np.float32)) for value in (0, 1, -1))
        chain.builtin("GREATER_EQUAL", [chain.y, zero], chain.y.shape, "BOOL")
        chain.builtin("SELECT_V2", [chain.y, one, minus], chain.y.shape, "FLOAT32")
    weights = RNG.choice([-1.0, 1.0], (outputs, taps, taps, channels)).astype(np.float32)
    bias = constant("bias", np.zeros(outputs, np.float32))
    inputs: list[Tensor | None] = [
        constant("shape", np.array(shape, np.int32)),
        constant("weights", weights),
        chain.y,
        bias,
    ]
    chain.builtin("TRANSPOSE_CONV", inputs, shape, version=3, padding=Padding.SAME, stride_h=stride, stride_w=stride)
    return chain.bytes()


def compare(title: str, models: dict[str, bytes], threads: int, rounds: int) -> None:
    """Prints a line with the median time of each model, and the ratio of the first model's time to each other
    model's."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{name}.tflite" for name in models]
        for file, model in zip(files, models.values(), strict=True):
            file.write_bytes(model)
        measured = take_turns([Contender(file, threads=threads) for file in files], rounds)
    (first, longest), *others = ((name, one.median) for name, one in zip(models, measured, strict=True))
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
            "float": Chain(1, size, size, channels).depthwise(3).bytes(),
            "to floats": Chain(1, size, size, 1, type="INT32").bconv(BITS_PER_WORD, channels, 1).bytes(),
            "to bits": Chain(1, size, size, packed_words(channels), type="INT32").max_pool_signs(3, 1).bytes(),
        }
        compare(f"{size}x{size}x{channels}", models, threads, rounds)


def main() -> int:
    """Runs the command line and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.layers", description="Time layers that bits imitate.")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15, help="turns of 0.1 s that each takes")
    return run(parser, compare_all, None)


if __name__ == "__main__":
    sys.exit(main())
