"""Loads weights from files: PyTorch's own, and Keras's, whose layers are matched by class and order."""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from litebnn.errors import printable, told_by
from litebnn.zoo.fetch import fetch_weights
from litebnn.zoo.keras_files import SavedLayer, layers_of_keras_2, layers_of_keras_3
from litebnn.zoo.networks import find_network

_HDF5 = b"\x89HDF\r\n\x1a\n"
_MEMBER = "model.weights.h5"  # of a .keras file


def load_weights(network: nn.Module, path: str | os.PathLike[str]) -> None:
    """Loads weights into a network of this package, from a file of PyTorch or of Keras.

    Args:
        network: the network, which must fit the file's weights.
        path: a file with a `state_dict`, as `torch.save` writes it, or a file that `load_keras_weights` accepts.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is of another kind, or has the weights of another network.
        ImportError: h5py, which a Keras file needs, is not installed.

    Example:
        >>> torch.save(BiRealNet().state_dict(), "birealnet.pt")
        >>> load_weights(BiRealNet(), "birealnet.pt")
    """
    if _keras_content(path) is not None:
        load_keras_weights(network, path)
        return
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
        network.load_state_dict(found)
    except Exception as error:
        reason = printable(" ".join(str(error).split())[:200])
        raise ValueError(f"{os.fspath(path)} has no weights of {type(network).__name__}: {reason}") from None


def load_given_weights(network: nn.Module, weights: str | os.PathLike[str] | None, include_top: bool) -> None:
    """Loads the weights that a network's argument names: "imagenet" fetches pretrained ones, None leaves random
    ones.

    Raises:
        OSError: the file cannot be read or fetched.
        ValueError: the zoo has no weights of the network, or the file has the weights of another network.
    """
    if weights == "imagenet":
        weights = fetch_weights(find_network(type(network).__name__), include_top)
    if weights is not None:
        load_weights(network, weights)


def load_keras_weights(network: nn.Module, path: str | os.PathLike[str]) -> None:
    """Copies the weights of a Keras file into a network. The network then computes the same as the Keras network.

    Layers are matched by their Keras class, and by their order among the layers of this class. Therefore layers in an
    .h5 file must have the names that Keras gives by itself, as in all files of larq-zoo.

    Args:
        network: a network with the attribute `keras_classes`, which maps the names of modules to the class names of
            Keras layers.
        path: a .h5 file of Keras 2, of weights or a whole model, or a .weights.h5 or .keras file of Keras 3.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is of another kind, or of another network; the message names the layer.
        ImportError: h5py is not installed.
    """
    content, name = _keras_content(path), os.fspath(path)
    classes: dict[type[nn.Module], str] = getattr(network, "keras_classes", {})
    if content is None:
        raise ValueError(f"{name} is no file of Keras: expected .h5, .weights.h5 or .keras")
    if not classes:
        raise ValueError(f"{type(network).__name__} has no counterpart in Keras: expected a file of torch.save")
    layers = _layers(content, name)
    modules = [(title, module) for title, module in network.named_modules() if type(module) in classes]
    matched: list[tuple[Tensor, Tensor]] = []
    for title, module in modules:
        kind = classes[type(module)]
        if not layers[kind]:
            raise ValueError(f"{name} has too few layers {kind}: none is left for {title} of {type(network).__name__}")
        matched += _matched(title, module, layers[kind].pop(0), name)
    left = [layer.name for kind in layers.values() for layer in kind]
    if left:
        raise ValueError(f"{name} has a layer {left[0]}, which {type(network).__name__} lacks")
    with torch.no_grad():
        for tensor, value in matched:
            tensor.copy_(value)


def _keras_content(path: str | os.PathLike[str]) -> bytes | None:
    """The content of a Keras file in HDF5, or of the HDF5 file inside a Keras archive; None for other files.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is a damaged archive.
    """
    with Path(path).open("rb") as file:
        start = file.read(len(_HDF5))
        if start == _HDF5:
            return start + file.read()
        try:
            if not zipfile.is_zipfile(file):
                return None
            with zipfile.ZipFile(file) as archive:
                return archive.read(_MEMBER) if _MEMBER in archive.namelist() else None
        except Exception as error:  # zipfile raises errors of many kinds for a damaged archive
            raise ValueError(f"{os.fspath(path)} is a damaged archive: {printable(told_by(error))}") from None


def _layers(content: bytes, name: str) -> dict[str, list[SavedLayer]]:
    """The layers that have weights, in the model's order. The keys of the result are the names of the layers'
    classes."""
    layers = layers_of_keras_2(io.BytesIO(content), name) or layers_of_keras_3(io.BytesIO(content), name)
    if layers is None:
        raise ValueError(f"{name} holds no weights of a Keras model")
    found: dict[str, list[SavedLayer]] = defaultdict(list)
    for layer in layers:
        found[re.sub(r"_\d+$", "", layer.name)].append(layer)
    return found


def _matched(title: str, module: Any, layer: SavedLayer, name: str) -> list[tuple[Tensor, Tensor]]:
    """The module's tensors, each paired with its value in PyTorch's layout.

    Raises:
        ValueError: the Keras layer has another number of weights, or weights of other shapes.
    """
    if isinstance(module, nn.BatchNorm2d):
        tensors = [module.weight, module.bias, module.running_mean, module.running_var]
    else:
        tensors = [module.weight, module.bias]
    tensors = [tensor for tensor in tensors if tensor is not None]
    values = [torch.from_numpy(_in_torch_layout(value, module)) for value in layer.weights]
    shapes, expected = ([list(each.shape) for each in group] for group in (values, tensors))
    if shapes != expected:
        raise ValueError(f"{name}: the layer {layer.name} has weights {shapes}, expected {expected} for {title}")
    return list(zip(tensors, values, strict=True))


def _in_torch_layout(value: Any, module: Any) -> Any:
    """A weight of Keras with its axes in PyTorch's order, outputs first."""
    if value.ndim == 4 and module.groups > 1:
        value = value.transpose(2, 3, 0, 1).reshape(-1, 1, *value.shape[:2])
    elif value.ndim == 4:
        value = value.transpose(3, 2, 0, 1)
    elif value.ndim == 2:
        value = value.T
    return np.ascontiguousarray(value, np.float32)
