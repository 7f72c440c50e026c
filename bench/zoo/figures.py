"""Writes the sizes and estimated times of the zoo's networks, which `litebnn zoo` lists.

Usage:

    python -m bench.zoo.figures

The command builds and converts each network of litebnn.keras.zoo, but runs none. Batch norms get random weights and
statistics, because the converter drops untrained ones.
"""

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from litebnn.convert import convert_keras_model
from litebnn.flatbuffer.metadata import with_metadata
from litebnn.keras import zoo
from litebnn.report.costs import HOST
from litebnn.report.inspection import inspect_model
from litebnn.zoo.convert import metadata_of
from litebnn.zoo.figures import FILE, Figures
from litebnn.zoo.labels import imagenet_classes
from litebnn.zoo.networks import NETWORKS


def randomise_batch_norms(model: Any, rng: np.random.Generator) -> None:
    """Gives the weights and statistics of every batch norm random positive values."""
    for variable in (each for layer in model.layers for each in layer.weights if "batch_norm" in layer.name):
        variable.assign(rng.uniform(0.5, 1.5, variable.shape))


def figures_of(name: str) -> Figures:
    """Converts a network, and returns the size of its file, its multiply-adds and its estimated times."""
    model = getattr(zoo, name)(weights=None)
    randomise_batch_norms(model, np.random.default_rng(0))
    labels = tuple(each.name for each in imagenet_classes())
    converted = with_metadata(convert_keras_model(model), metadata_of(NETWORKS[name], True, labels))
    found = inspect_model(converted)
    # Estimates are rounded to three digits. Their error is up to 10 %, and more digits would change with every fit of
    # the costs.
    seconds = {board: float(f"{time:.3g}") for board, time in found.seconds.items() if board != HOST}
    return Figures(len(converted), found.macs.binary, found.macs.int8 + found.macs.float, seconds)


def main() -> None:
    """Writes the table that `litebnn zoo` lists."""
    rows = {}
    for name in NETWORKS:
        rows[name] = asdict(figures_of(name))
        print(name, rows[name], flush=True)
    FILE.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
