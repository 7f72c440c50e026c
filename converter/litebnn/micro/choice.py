"""The kernel of a binary layer: the cheapest of `pack.KERNELS` for its shape on a target."""

from __future__ import annotations

from litebnn.micro.pack import COUNT_BITS, Geometry

# Instructions for 32 products of a lane, packed 3x3 outputs, as measured in QEMU.
_COSTS = {
    "compact": {"popcount": 17.0, "pairs": 8.2},
    "fast": {"popcount": 17.0, "pairs": 8.2, "triples": 7.0},
}
_LANES = {"popcount": 1, "pairs": 32, "triples": 32, "helium": 128}
_HELIUM = ("cortex-m55", 2.8)


def choose_kernel(geometry: Geometry, target: str, kernels: str) -> str:
    """The name of the kernel with the fewest instructions; lanes without a channel count as if they had one."""
    costs = dict(_COSTS[kernels])
    if target == _HELIUM[0]:
        costs["helium"] = _HELIUM[1]
    if geometry.depth.bit_length() > COUNT_BITS:
        return "popcount"
    return min(costs, key=lambda name: costs[name] * -(-geometry.group_outputs // _LANES[name]) * _LANES[name])
