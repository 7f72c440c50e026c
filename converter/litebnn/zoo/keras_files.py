"""Reads the weights in files of Keras 2 and 3: HDF5, with a group for each layer. It needs no framework.

Names of layers differ from one process to the next, so a network's layers are matched by their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from litebnn.errors import printable, told_by

Array = npt.NDArray[Any]


class SavedLayer(NamedTuple):
    """A layer of a file: its name there, and its weights in the file's order."""

    name: str
    weights: list[Array]


def layers_of_keras_2(source: Path | BinaryIO, name: str) -> list[SavedLayer] | None:
    """The layers that have weights, in the order of the model; None if the file is not HDF5 as Keras 2 writes it.

    Args:
        source: the path or the content of a file of weights or of a whole model.
        name: the file's name for messages.

    Raises:
        ValueError: the file is damaged, or has weights that are not finite numbers.
        ImportError: h5py is not installed.
    """
    return _layers(source, name, is_keras_3=False)


def layers_of_keras_3(source: Path | BinaryIO, name: str) -> list[SavedLayer] | None:
    """The layers that have weights, by number within their class; None if the file is not HDF5 as Keras 3 writes it.

    Args and errors are those of `layers_of_keras_2`.
    """
    return _layers(source, name, is_keras_3=True)


def _layers(source: Path | BinaryIO, name: str, is_keras_3: bool) -> list[SavedLayer] | None:
    try:
        import h5py
    except ImportError:
        raise ImportError(f"{name} needs h5py to be read: pip install h5py") from None
    if isinstance(source, Path) and not h5py.is_hdf5(source):
        return None
    try:
        with h5py.File(source, "r") as file:
            found = _read_keras_3(file) if is_keras_3 else _read_keras_2(file)
    except Exception as error:  # h5py raises errors of many kinds for a damaged file
        raise ValueError(f"{name} is a damaged HDF5 file: {printable(told_by(error))}") from None
    for layer in found or ():
        for value in layer.weights:
            if not np.issubdtype(value.dtype, np.floating) or not np.isfinite(value).all():
                raise ValueError(f'{name}: layer "{printable(layer.name)}" has weights that are not finite numbers')
    return None if found is None else [layer for layer in found if layer.weights]


def _read_keras_2(file: Any) -> list[SavedLayer] | None:
    group = file["model_weights"] if "layer_names" not in file.attrs and "model_weights" in file else file
    names = list(_names(group, "layer_names"))
    if not names:
        return None
    weights = ([np.asarray(group[name][key]) for key in _names(group[name], "weight_names")] for name in names)
    return [SavedLayer(*row) for row in zip(names, weights, strict=True)]


def _read_keras_3(file: Any) -> list[SavedLayer] | None:
    if "layers" not in file:
        return None
    groups = file["layers"]
    names = sorted(groups, key=_number)
    variables = (groups[name].get("vars", {}) for name in names)
    weights = ([np.asarray(each[key]) for key in sorted(each, key=int)] for each in variables)
    return [SavedLayer(*row) for row in zip(names, weights, strict=True)]


def _number(layer: str) -> int:
    """The number of a layer within its class. Keras 3 names a layer by its class and this number, and leaves out the
    number 0.
    """
    found = re.search(r"_(\d+)$", layer)
    return int(found[1]) if found else 0


def _names(group: Any, attribute: str) -> Iterator[str]:
    """The strings of an attribute. HDF5 limits the size of an attribute, so Keras splits longer lists into several
    numbered attributes."""
    parts = [attribute] if attribute in group.attrs else []
    while not parts or parts[-1] != attribute:
        part = f"{attribute}{len(parts)}"
        if part not in group.attrs:
            break
        parts.append(part)
    for part in parts:
        for name in group.attrs[part]:
            yield name.decode("utf-8") if isinstance(name, bytes) else str(name)
