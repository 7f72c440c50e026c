"""Chooses the kernel of a binary layer: the one of `pack.KERNELS` with the fewest instructions for the layer's shape on
a microcontroller.

The file `costs.json` has the measured instructions of each kernel on each microcontroller. `python -m bench.micro
--write` measures them.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from litebnn.contract import BITS_PER_WORD
from litebnn.micro.pack import COUNT_BITS, KERNELS, Geometry

COSTS_FILE = Path(__file__).parent / "costs.json"
# The kinds of layer outputs that are numbers, not bits. "fixed" is int8 that the kernel computes with integers
# alone, "int8" is int8 that it computes with floats.
NUMBERS = ("int8", "fixed", "float32")
# The kernels that store more than one bit for each weight, and are excluded by the option "compact".
LARGE = ("triples",)


def features(geometry: Geometry, kernel: str, output: str) -> list[int]:
    """Returns the amounts of work for one output pixel. Each amount has a measured cost; the products of amounts and
    costs add up to the pixel's instructions. The first four amounts are 1, the words of the window, the blocks of
    channels, and the words of all blocks. For each kind of output in NUMBERS, two amounts follow: blocks and channels.
    They are 0 if the layer's output is of another kind.
    """
    way = KERNELS[kernel]
    words = -(-geometry.depth // BITS_PER_WORD)
    words += -words % way.word_multiple
    blocks = geometry.groups * -(-geometry.group_outputs // way.lanes)
    of_numbers = (count if output == name else 0 for name in NUMBERS for count in (blocks, geometry.channels_out))
    return [1, geometry.groups * words, blocks, blocks * words, *of_numbers]


@cache
def _costs() -> dict[str, dict[str, list[float]]]:
    loaded: dict[str, dict[str, list[float]]] = json.loads(COSTS_FILE.read_text(encoding="utf-8"))
    return loaded


def instructions(geometry: Geometry, target: str, kernel: str, output: str) -> float:
    """The estimated number of instructions of a layer for one inference. `output` is the kind of output: "bits" or one
    of NUMBERS."""
    pixel = zip(_costs()[target][kernel], features(geometry, kernel, output), strict=True)
    return geometry.output_height * geometry.output_width * sum(cost * quantity for cost, quantity in pixel)


def choose_kernel(geometry: Geometry, target: str, kernels: str, output: str = "bits") -> str:
    """The name of the kernel with the fewest instructions, among the kernels of the group `kernels`, which is "compact"
    or "fast"."""
    if geometry.depth.bit_length() > COUNT_BITS:
        return "popcount"
    known = [name for name in _costs()[target] if kernels == "fast" or name not in LARGE]
    return min(known, key=lambda name: instructions(geometry, target, name, output))
