"""Loads weights from files: PyTorch's own, and Keras's, whose layers are matched by class and order."""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from litebnn.zoo.fetch import fetch_weights
from litebnn.zoo.networks import find_network

_HDF5 = b"\x89HDF\r\n\x1a\n"
_MEMBER = "model.weights.h5"  # of a .keras file


class _Layer(NamedTuple):
    """A layer of a Keras file: its name there, and its weights in Keras's order."""

    name: str
    weights: list[Any]


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
    except OSError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
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
    """The content of a Keras file in HDF5, or of the HDF5 file inside a Keras archive; None for other files."""
    with Path(path).open("rb") as file:
        start = file.read(len(_HDF5))
        if start == _HDF5:
            return start + file.read()
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                return archive.read(_MEMBER) if _MEMBER in archive.namelist() else None
    return None


def _layers(content: bytes, name: str) -> dict[str, list[_Layer]]:
    """The layers that have weights, in the model's order. The keys of the result are the names of the layers'
    classes."""
    try:
        import h5py
    except ImportError:
        raise ImportError(f"{name} needs h5py to be read: pip install h5py") from None
    found: dict[str, list[_Layer]] = defaultdict(list)
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            for layer in _layers_of_keras_3(file["layers"]) if "layers" in file else _layers_of_keras_2(file):
                if layer.weights:
                    found[re.sub(r"_\d+$", "", layer.name)].append(layer)
    except (KeyError, OSError) as error:
        raise ValueError(f"{name} holds no weights of a Keras model: {error}") from None
    return found


def _layers_of_keras_3(layers: Any) -> Iterator[_Layer]:
    """The layers of a file that Keras 3 wrote. In such a file, a layer's name is its class and its number within the
    class.
    """

    def number(name: str) -> int:
        found = re.search(r"_(\d+)$", name)
        return int(found[1]) if found else 0

    for name in sorted(layers, key=number):
        variables = layers[name].get("vars", {})
        yield _Layer(name, [np.asarray(variables[key]) for key in sorted(variables, key=int)])


def _layers_of_keras_2(file: Any) -> Iterator[_Layer]:
    """The layers of a file that Keras 2 wrote."""
    root = file.get("model_weights", file)
    for name in _names(root.attrs, "layer_names"):
        group = root[name]
        yield _Layer(name, [np.asarray(group[weight]) for weight in _names(group.attrs, "weight_names")])


def _names(attributes: Any, key: str) -> list[str]:
    """The names in an attribute. Keras splits the attribute into several if it has too many names."""
    keys = [key] if key in attributes else sorted((k for k in attributes if k.startswith(key)), key=len)
    if not keys:
        raise KeyError(f"no {key}")
    return [n.decode() if isinstance(n, bytes) else str(n) for each in keys for n in attributes[each]]


def _matched(title: str, module: Any, layer: _Layer, name: str) -> list[tuple[Tensor, Tensor]]:
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
