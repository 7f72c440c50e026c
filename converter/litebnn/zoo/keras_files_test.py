"""Tests reading files of Keras that are damaged at random."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litebnn.zoo.keras_files import SavedLayer, layers_of_keras_2, layers_of_keras_3
from tests.needs import imported

SHAPES = {"conv2d": [(3, 3, 2, 4), (4,)], "re_lu": [], "batch_normalization": [(4,)] * 4, "conv2d_1": [(1, 1, 4, 3)]}
LAYERS = {
    name: [np.full(shape, index, np.float32) for index, shape in enumerate(shapes)] for name, shapes in SHAPES.items()
}
READ = {2: layers_of_keras_2, 3: layers_of_keras_3}


def content(version: int) -> bytes:
    """A file of weights in the format of Keras 2 or 3, which `version` selects."""
    h5py: Any = imported("h5py", "keras")
    whole = io.BytesIO()
    with h5py.File(whole, "w") as file:
        if version == 2:
            file.attrs["layer_names"] = [name.encode() for name in LAYERS]
        for name, weights in LAYERS.items():
            group = file.create_group(name if version == 2 else f"layers/{name}/vars")
            keys = [f"{name}/weight_{index}:0" if version == 2 else str(index) for index in range(len(weights))]
            if version == 2:
                group.attrs["weight_names"] = [key.encode() for key in keys]
            for key, weight in zip(keys, weights, strict=True):
                group[key] = weight
    return whole.getvalue()


def check(layers: list[SavedLayer] | None) -> None:
    assert layers is not None
    assert sorted(layer.name for layer in layers) == sorted(name for name, weights in LAYERS.items() if weights)
    for layer in layers:
        for found, expected in zip(layer.weights, LAYERS[layer.name], strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("version", READ)
def test_layers_with_weights_are_read_from_a_file_or_its_content(version: int, tmp_path: Path) -> None:
    whole = content(version)
    (tmp_path / "weights.h5").write_bytes(whole)
    check(READ[version](tmp_path / "weights.h5", "weights.h5"))
    check(READ[version](io.BytesIO(whole), "weights.h5"))
    assert READ[5 - version](io.BytesIO(whole), "weights.h5") is None


@pytest.mark.parametrize("version", READ)
@pytest.mark.parametrize("seed", range(2))
def test_a_damaged_file_is_one_line_that_names_it(version: int, seed: int) -> None:
    whole, rng = content(version), np.random.default_rng(seed)
    messages = []
    for _ in range(100):
        changed = bytearray(whole[: rng.integers(1, len(whole))] if rng.random() < 0.2 else whole)
        start = int(rng.integers(len(changed)))
        changed[start : start + 8] = rng.choice([rng.bytes(8), b"\xff" * 8, bytes(8)])[: len(changed) - start]
        try:
            READ[version](io.BytesIO(bytes(changed)), "weights.h5")
        except ValueError as error:
            messages.append(str(error))
    assert len(messages) > 10
    assert all(message.startswith("weights.h5") and message.isprintable() for message in messages)
