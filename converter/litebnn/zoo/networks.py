"""The table of networks: their names, their pretrained weights, their accuracy and their papers.

The table is the file networks.json. The weights were trained by larq-zoo's authors, who publish them as release files
of a repository on GitHub, under the Apache License 2.0. Accuracies are those of larq-zoo's documentation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from litebnn.errors import check_type, shown

CLASSES = 1000
# `python -m bench.zoo.figures` writes it.
FIGURES = Path(__file__).with_name("figures.json")
RELEASES = "https://github.com/larq/zoo/releases/download"


@dataclass(frozen=True)
class Paper:
    title: str
    address: str


@dataclass(frozen=True)
class WeightsFile:
    """A file of weights: its release's version, its name, and its SHA-256."""

    version: str
    name: str
    sha256: str


@dataclass(frozen=True)
class Network:
    """A row of the table of networks in the zoo: its name, weights and published accuracy."""

    name: str  # of the function that builds the network, for example "QuickNet"
    model: str  # name of the model that the function builds
    kind: str  # larq-zoo's module: "sota" or "literature"
    top_1: float  # percent of ImageNet's validation images that the network classifies correctly
    # The share of ImageNet's validation images whose class is among the network's five most likely ones, in percent.
    top_5: float
    paper: Paper
    release: str  # of the weights on GitHub, without the version
    weights: WeightsFile
    weights_without_top: WeightsFile  # without the top layers, which classify

    @property
    def command(self) -> str:
        """The name on the command line, for example "quicknet"."""
        return self.name.lower()

    def file(self, include_top: bool = True) -> WeightsFile:
        return self.weights if include_top else self.weights_without_top

    def address(self, include_top: bool = True) -> str:
        """The address of a file of weights."""
        file = self.file(include_top)
        return f"{RELEASES}/{self.release}-{file.version}/{file.name}"


def _read(table: dict[str, Any]) -> dict[str, Network]:
    papers = {key: Paper(**row) for key, row in table["papers"].items()}
    return {
        name: Network(
            **{
                **row,
                "name": name,
                "paper": papers[row["paper"]],
                "weights": WeightsFile(**row["weights"]),
                "weights_without_top": WeightsFile(**row["weights_without_top"]),
            }
        )
        for name, row in table["networks"].items()
    }


NETWORKS = _read(json.loads(Path(__file__).with_name("networks.json").read_text(encoding="utf-8")))


def find_network(name: str) -> Network:
    """Finds the network with this name. Upper and lower case, "_" and "-" do not matter.

    Raises:
        ValueError: no network has this name.
        TypeError: the name is no text.
    """
    check_type("the network's name", name, "a text", str)
    wanted = name.lower().replace("_", "").replace("-", "")
    found = next((network for network in NETWORKS.values() if network.command == wanted), None)
    if found is None:
        names = ", ".join(network.command for network in NETWORKS.values())
        raise ValueError(f'the zoo has no network "{shown(name)}", expected one of {names}')
    return found


@dataclass(frozen=True)
class ImageNetClass:
    """A class of ImageNet: the identifier of its synset, for example "n02129604", and its name, for example "tiger"."""

    synset: str
    name: str


@lru_cache(maxsize=1)
def imagenet_classes() -> tuple[ImageNetClass, ...]:
    """The classes of ImageNet, in the order of the networks' outputs. Two pairs of classes have the same name.

    The names are the first words of their synsets in WordNet 3.0. Copyright 2006 by Princeton University, all rights
    reserved; the license at https://wordnet.princeton.edu/license-and-commercial-use allows to copy them.
    """
    lines = Path(__file__).with_name("imagenet_classes.txt").read_text(encoding="utf-8").splitlines()
    return tuple(ImageNetClass(*line.split(" ", 1)) for line in lines)


@dataclass(frozen=True)
class Figures:
    """The size, the number of operations and the estimated times of a converted network."""

    bytes: int  # of the network's file, with labels
    binary_macs: int
    other_macs: int
    seconds: Mapping[str, float]  # estimated for one inference with one thread, by board


@lru_cache(maxsize=1)
def figures() -> dict[str, Figures]:
    """The figures of each network, by its name."""
    return {name: Figures(**row) for name, row in json.loads(FIGURES.read_text(encoding="utf-8")).items()}
