"""Random layers, and the instructions that they take on an emulated board."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bench.micro.source import CLAMPS, Array, Case, program_source
from litebnn.micro.choice import NUMBERS
from litebnn.micro.fixed_output import fixed_output
from litebnn.micro.pack import KERNELS, Geometry, pack_bconv2d, words_of
from toolchains.bare_metal import compile_program, run_program
from toolchains.targets import Target

OUTPUTS = ("bits", *NUMBERS)
SIDE = 4


def random_case(
    kernel: str, channels: int, output: str, side: int = SIDE, channels_out: int = 0, filter_size: int = 3
) -> Case:
    """Makes a random layer without padding, with its input and its expected output.

    `kernel` is a name of `KERNELS`, and `output` one of OUTPUTS. `channels` is the number of input channels, a multiple
    of 32. If `channels_out` is 0, the number of output channels is the same. `side` is the height and width of the
    output, and `filter_size` that of the filter.
    """
    rng = np.random.default_rng(channels)
    outputs, size = channels_out or channels, side + filter_size - 1
    pixels = rng.integers(0, 2, (size, size, channels), np.uint8)
    weights = rng.integers(0, 2, (outputs, filter_size, filter_size, channels), np.uint8)
    inputs, filters = (1 - 2 * bits.astype(np.int32) for bits in (pixels, weights))
    taps = [(y, x) for y in range(filter_size) for x in range(filter_size)]
    dots = np.sum([inputs[y : y + side, x : x + side] @ filters[:, y, x].T for y, x in taps], axis=0)
    depth = len(taps) * channels
    geometry = Geometry(
        *(size, size, channels, side, side, outputs), filter_height=filter_size, filter_width=filter_size
    )
    words = words_of(pixels)
    if output == "bits":
        thresholds = rng.integers(depth // 2 - 8, depth // 2 + 8, outputs)
        signs = np.zeros((side, side, -(-outputs // 32) * 32), bool)
        signs[..., :outputs] = (depth - dots) // 2 > thresholds
        packed = pack_bconv2d(kernel, geometry, words_of(weights), thresholds)
        return Case(kernel, geometry, packed, words, words_of(signs))
    fixed = None
    # For a few multipliers and biases, no integer arithmetic gives the same outputs as floats. In that case the loop
    # draws other values.
    while fixed is None:
        multiplier = rng.normal(0, 60 / depth**0.5, outputs).astype(np.float32)
        bias = rng.normal(0, 10, outputs).astype(np.float32)
        fixed = fixed_output(geometry, multiplier, bias, CLAMPS, 0)
    packed = pack_bconv2d(kernel, geometry, words_of(weights), None)
    values: Array = dots.astype(np.float32) * multiplier + bias
    if output in ("int8", "fixed"):
        values = np.clip(values, np.float32(-128), np.float32(127))
        half = np.nextafter(np.float32(0.5), np.float32(0))
        values = np.trunc(values + np.where(values < 0, -half, half)).astype(np.int8)
    return Case(kernel, geometry, packed, words, values, multiplier, bias, fixed=fixed if output == "fixed" else None)


def products_of(case: Case) -> int:
    """The number of binary multiplications in a layer."""
    g = case.geometry
    return g.output_height * g.output_width * g.channels_out * g.depth


def kernels_of(target: Target) -> list[str]:
    """The kernels that run on a target's CPU."""
    return [name for name in KERNELS if name != "helium" or "m55" in target.name]


def instructions(target: Target, cases: list[Case], flags: tuple[str, ...] = ("-O2",)) -> list[int]:
    """Runs the layers on the target's emulated board, and returns the instructions of each.

    Raises:
        ToolkitError: the compiler or QEMU is missing, or an output is wrong.
    """
    with TemporaryDirectory() as folder:
        source = Path(folder) / "cases.c"
        source.write_text(program_source(cases), encoding="utf-8")
        program = compile_program(target, [source], source.with_suffix(".elf"), flags)
        lines = run_program(target, program).splitlines()
    assert len(lines) == len(cases)
    return [int(line.split()[-2]) for line in lines]


def count(target: Target, cases: list[Case], flags: tuple[str, ...] = ("-O2",)) -> list[float]:
    """Runs the layers on the target's emulated board. Returns, for each layer, the executed instructions per 32 binary
    multiplications."""
    return [n * 32 / products_of(case) for n, case in zip(instructions(target, cases, flags), cases, strict=True)]
