"""Writes the sizes and estimated times of the zoo's networks, which `litebnn zoo` lists.

Usage:

    python -m bench.zoo.figures

It builds each network of litebnn.keras.zoo and converts it; nothing is run. Weights and statistics are random, because
a batch norm of an untrained network is left out of the converted file.
"""

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from litebnn.convert import convert_keras_model
from litebnn.flatbuffer import with_metadata
from litebnn.keras import zoo
from litebnn.report.costs import HOST
from litebnn.report.inspection import inspect_model
from litebnn.zoo.convert import metadata_of
from litebnn.zoo.figures import FILE, Figures
from litebnn.zoo.labels import imagenet_classes
from litebnn.zoo.networks import NETWORKS


def randomise_batch_norms(model: Any, rng: np.random.Generator) -> None:
    """Gives the weights of every batch norm random values; variances are positive."""
    for variable in (each for layer in model.layers for each in layer.weights if "batch_norm" in layer.name):
        variable.assign(rng.uniform(0.5, 1.5, variable.shape))


def figures_of(name: str) -> Figures:
    """The figures of a network."""
    model = getattr(zoo, name)(weights=None)
    randomise_batch_norms(model, np.random.default_rng(0))
    labels = tuple(each.name for each in imagenet_classes())
    converted = with_metadata(convert_keras_model(model), metadata_of(NETWORKS[name], True, labels))
    found = inspect_model(converted)
    # Estimates are good to 10 %, so that further digits would only change with every fit of the costs.
    seconds = {board: float(f"{time:.3g}") for board, time in found.seconds.items() if board != HOST}
    return Figures(len(converted), found.macs.binary, found.macs.int8 + found.macs.float, seconds)


def main() -> None:
    """Writes the file."""
    rows = {}
    for name in NETWORKS:
        rows[name] = asdict(figures_of(name))
        print(name, rows[name], flush=True)
    FILE.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
