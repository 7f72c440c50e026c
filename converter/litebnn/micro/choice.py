"""Chooses the kernel of a binary layer: the cheapest of `pack.KERNELS` for the layer's shape on a target.

The file `costs.json` has the measured instructions of each kernel, by target; `python -m bench.micro --write` measures
them.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from litebnn.contract import BITS_PER_WORD
from litebnn.micro.pack import COUNT_BITS, KERNELS, Geometry

COSTS_FILE = Path(__file__).parent / "costs.json"
# The kinds of output that are numbers, not bits; "fixed" is int8 that is computed with integers.
NUMBERS = ("int8", "fixed", "float32")
# Kernels whose weights take more than one bit each.
LARGE = ("triples",)


def features(geometry: Geometry, kernel: str, output: str) -> list[int]:
    """Returns quantities for one output pixel. If each is multiplied by its measured cost, the products add up to
    the pixel's instructions. The quantities are 1, the words of the window, the blocks of channels, and the words of
    all blocks. For each of NUMBERS, the numbers of blocks and channels follow.
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
    """The estimated number of instructions of a layer. `output` is "bits" or one of NUMBERS."""
    pixel = zip(_costs()[target][kernel], features(geometry, kernel, output), strict=True)
    return geometry.output_height * geometry.output_width * sum(cost * quantity for cost, quantity in pixel)


def choose_kernel(geometry: Geometry, target: str, kernels: str, output: str = "bits") -> str:
    """The name of the kernel with the fewest instructions. `kernels` is "compact" or "fast" and selects the group of
    kernels."""
    if geometry.depth.bit_length() > COUNT_BITS:
        return "popcount"
    known = [name for name in _costs()[target] if kernels == "fast" or name not in LARGE]
    return min(known, key=lambda name: instructions(geometry, target, name, output))
