"""Sizes and estimated times of the converted networks, from the table that `python -m bench.zoo.figures` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

FILE = Path(__file__).with_name("figures.json")


@dataclass(frozen=True)
class Figures:
    """The size, the number of operations and the estimated times of a converted network."""

    # The size of the network's file in bytes, with labels.
    bytes: int
    # The binary multiply-accumulates of one inference.
    binary_macs: int
    # The multiply-accumulates of one inference that are not binary.
    other_macs: int
    # The estimated time of one inference with one thread, by board.
    seconds: Mapping[str, float]


@lru_cache(maxsize=1)
def figures() -> dict[str, Figures]:
    """The figures of each network, by its name."""
    return {name: Figures(**row) for name, row in json.loads(FILE.read_text(encoding="utf-8")).items()}
