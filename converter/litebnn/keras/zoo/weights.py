"""Loads weights from files that Keras 2 wrote into the same network in Keras 3.

Layers are matched by their order and their weights' shapes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from litebnn.errors import told_by
from litebnn.zoo.keras_files import SavedLayer, layers_of_keras_2


def load_weights(model: Any, path: str | Path) -> None:
    """Sets a model's weights to those of a file: HDF5 of Keras 2 (.h5), or a file of Keras 3 (.weights.h5, .keras).

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is of another kind, or has the weights of another network.
    """
    path = Path(path)
    with path.open("rb"):  # raises an error that names the file if it does not exist
        pass
    saved = layers_of_keras_2(path, str(path))
    if saved is None:
        _load_keras_3(model, path)
        return
    layers = [(layer.name, _variables(layer)) for layer in model.layers if _variables(layer)]
    if len(saved) != len(layers):
        raise ValueError(
            f"{path} has the weights of {len(saved)} layers, but {model.name} has {len(layers)} layers with weights: "
            "it is of another network, or include_top differs"
        )
    matched = [
        pair
        for (name, variables), row in zip(layers, saved, strict=True)
        for pair in _matched(path, name, variables, row)
    ]
    for variable, value in matched:
        variable.assign(value)


def _variables(layer: Any) -> list[Any]:
    """The weights of a layer in the order in which Keras 2 writes them: the trainable weights first."""
    return [*layer.trainable_weights, *layer.non_trainable_weights]


def _load_keras_3(model: Any, path: Path) -> None:
    try:
        model.load_weights(path)
    except Exception as error:  # Keras raises whatever its reader of zip files, HDF5 or JSON does
        raise ValueError(f"{path} has no weights for {model.name}: {told_by(error)}") from None


def _matched(path: Path, name: str, variables: list[Any], saved: SavedLayer) -> list[tuple[Any, Any]]:
    """Matches the weights of a layer with the values from the file, and returns them in pairs.

    Raises:
        ValueError: the numbers or shapes of the weights differ.
    """
    saved_name, values = saved
    shapes = [tuple(value.shape) for value in values]
    expected = [tuple(variable.shape) for variable in variables]
    if shapes != expected:
        raise ValueError(
            f'{path}: layer "{saved_name}" has weights of shapes {shapes}, but layer "{name}" has {expected}: '
            "the file is of another network, image size or number of classes"
        )
    return list(zip(variables, values, strict=True))
