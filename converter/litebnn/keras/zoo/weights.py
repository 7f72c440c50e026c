"""Loads weights from files that Keras 2 wrote into the same network in Keras 3.

A file of Keras 2 is HDF5 with a group for each layer, in the order of the model's layers. Names of layers differ from
one process to the next, so layers are matched by their order and their weights' shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from litebnn.errors import told_by


def load_weights(model: Any, path: str | Path) -> None:
    """Sets a model's weights to those of a file: HDF5 of Keras 2 (.h5), or a file of Keras 3 (.weights.h5, .keras).

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is of another kind, or has the weights of another network.
    """
    path = Path(path)
    with path.open("rb"):  # an error that names the file, if there is none
        pass
    if not _is_keras_2(path):
        _load_keras_3(model, path)
        return
    layers = [(layer.name, _variables(layer)) for layer in model.layers if _variables(layer)]
    saved = list(_saved_layers(path))
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


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Opens an HDF5 file.

    Raises:
        ValueError: the file is damaged.
    """
    import h5py

    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise ValueError(f"{path} is a damaged HDF5 file: {told_by(error)}") from None
    with file:
        yield file


def _is_keras_2(path: Path) -> bool:
    import h5py

    if not h5py.is_hdf5(path):
        return False
    with _opened(path) as file:
        return bool(_names(_weights_group(file), "layer_names"))


def _load_keras_3(model: Any, path: Path) -> None:
    try:
        model.load_weights(path)
    except Exception as error:  # Keras raises whatever its reader of zip files, HDF5 or JSON does
        raise ValueError(f"{path} has no weights for {model.name}: {told_by(error)}") from None


def _weights_group(file: Any) -> Any:
    """Returns the HDF5 group that contains the layers. It is the whole file, or a group in a file of a whole model."""
    return file["model_weights"] if "layer_names" not in file.attrs and "model_weights" in file else file


def _names(group: Any, attribute: str) -> list[str]:
    """The strings of an attribute. HDF5 limits the size of an attribute, so Keras splits longer lists into several
    numbered attributes."""
    parts = [attribute] if attribute in group.attrs else []
    while not parts or parts[-1] != attribute:
        part = f"{attribute}{len(parts)}"
        if part not in group.attrs:
            break
        parts.append(part)
    names = [name for part in parts for name in group.attrs[part]]
    return [name.decode("utf-8") if isinstance(name, bytes) else str(name) for name in names]


def _saved_layers(path: Path) -> Iterator[tuple[str, list[Any]]]:
    """The layers that have weights, each with its name and its weights, in the file's order."""
    with _opened(path) as file:
        group = _weights_group(file)
        for layer in _names(group, "layer_names"):
            try:
                values = [np.asarray(group[layer][name]) for name in _names(group[layer], "weight_names")]
            except (KeyError, OSError, TypeError) as error:
                raise ValueError(f'{path} is damaged at layer "{layer}": {told_by(error)}') from None
            if values:
                yield layer, values


def _matched(path: Path, name: str, variables: list[Any], saved: tuple[str, list[Any]]) -> list[tuple[Any, Any]]:
    """Matches the weights of a layer with the values from the file, and returns them in pairs.

    Raises:
        ValueError: the numbers, shapes or types of the weights differ.
    """
    saved_name, values = saved
    shapes = [tuple(value.shape) for value in values]
    expected = [tuple(variable.shape) for variable in variables]
    if shapes != expected:
        raise ValueError(
            f'{path}: layer "{saved_name}" has weights of shapes {shapes}, but layer "{name}" has {expected}: '
            "the file is of another network, image size or number of classes"
        )
    for value in values:
        if not np.issubdtype(value.dtype, np.floating) or not np.isfinite(value).all():
            raise ValueError(f'{path}: layer "{saved_name}" has weights that are not finite numbers')
    return list(zip(variables, values, strict=True))
