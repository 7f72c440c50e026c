"""The 1,000 classes of ImageNet, in the order of the networks' outputs.

The names are the first words of their synsets in WordNet 3.0. Copyright 2006 by Princeton University, all rights
reserved; the license at https://wordnet.princeton.edu/license-and-commercial-use allows to copy them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path


@dataclass(frozen=True)
class ImageNetClass:
    """A class of ImageNet: the identifier of its synset, for example "n02129604", and its name, for example "tiger"."""

    synset: str
    name: str


@lru_cache(maxsize=1)
def imagenet_classes() -> tuple[ImageNetClass, ...]:
    """The classes of ImageNet in their order. Two pairs of classes have the same name."""
    lines = Path(__file__).with_name("imagenet_classes.txt").read_text(encoding="utf-8").splitlines()
    return tuple(ImageNetClass(*line.split(" ", 1)) for line in lines)
