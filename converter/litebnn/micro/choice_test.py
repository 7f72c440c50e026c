from dataclasses import replace

import pytest

from litebnn.micro import TARGETS
from litebnn.micro.choice import choose_kernel, instructions
from litebnn.micro.pack import KERNELS, Geometry

LAYER = Geometry(6, 6, 128, 4, 4, 128, filter_height=3, filter_width=3)


@pytest.mark.parametrize(
    ("target", "kernels", "channels_out", "kernel"),
    [
        ("cortex-m4", "compact", 128, "pairs"),
        ("cortex-m4", "fast", 128, "triples"),
        ("cortex-m7", "fast", 40, "triples"),
        ("cortex-m55", "compact", 128, "helium"),
        ("cortex-m55", "compact", 32, "pairs"),
        ("rv32imc", "compact", 128, "pairs_of_masks"),
        ("rv32imc", "compact", 3, "popcount"),
        ("cortex-m4", "fast", 3, "popcount"),
    ],
)
def test_the_choice(target: str, kernels: str, channels_out: int, kernel: str) -> None:
    assert choose_kernel(replace(LAYER, channels_out=channels_out), target, kernels) == kernel


def test_counts_of_more_than_16_bits_are_popcounts() -> None:
    assert choose_kernel(Geometry(1, 1, 70000, 1, 1, 64), "cortex-m4", "fast") == "popcount"


@pytest.mark.parametrize("target", TARGETS)
def test_the_choice_is_the_cheapest(target: str) -> None:
    chosen = choose_kernel(LAYER, target, "fast", "int8")
    known = [name for name in KERNELS if name != "helium" or target == "cortex-m55"]
    costs = {name: instructions(LAYER, target, name, "int8") for name in known}
    assert costs[chosen] == min(costs.values())
