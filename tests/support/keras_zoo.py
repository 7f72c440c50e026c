"""Runs networks of litebnn.keras.zoo on the backend that KERAS_BACKEND names.

    python -m tests.support.keras_zoo FOLDER NAME...

The folder has inputs.npz: images for the networks, and a photo. It also has NAME.h5 for each network, weights as
Keras 2 saves them. Written is BACKEND.npz with the outputs of `outputs`. It is a program because a process has one
backend.
"""

import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np

from litebnn.keras import zoo

CLASSES = 7


def outputs(folder: Path, names: list[str]) -> dict[str, Any]:
    """The probabilities by the networks' names, and the preprocessed photo."""
    inputs = np.load(folder / "inputs.npz")
    found = {"preprocessed": zoo.preprocess_input(keras.ops.convert_to_tensor(inputs["photo"]))}
    for name in names:
        shape = inputs["images"].shape[1:]
        model = getattr(zoo, name)(weights=folder / f"{name}.h5", input_shape=shape, num_classes=CLASSES)
        found[name] = model.predict(inputs["images"], verbose=0)
    return {name: keras.ops.convert_to_numpy(value) for name, value in found.items()}


if __name__ == "__main__":
    assert zoo.decode_predictions(keras.ops.one_hot([292], 1000), top=1) == [[("n02129604", "tiger", 1.0)]]
    np.savez(Path(sys.argv[1]) / f"{keras.config.backend()}.npz", **outputs(Path(sys.argv[1]), sys.argv[2:]))
