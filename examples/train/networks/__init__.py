"""Networks by name: the small one of this folder's modules, the zoo's, or the user's own.

Each framework has a module here with `small(classes, size)`, a network for trials on small images.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from examples.train.options import Options
from litebnn.zoo.fetch import fetch_weights
from litebnn.zoo.networks import find_network

SMALL = "small"
PRETRAINED = "imagenet"

Builder = Callable[[int, int], Any]


def builder(name: str, framework: str, zoo: Mapping[str, Builder]) -> Builder:
    """The function of (classes, size) that makes a network with random weights.

    `name` is "small", a name of `zoo`, or module:function. `framework` is the name of a module of this folder. `zoo`
    has the functions of the framework's networks by their names.

    Raises:
        ValueError: there is no such network.
    """
    if name == SMALL:
        small: Builder = importlib.import_module(f"{__name__}.{framework}").small
        return small
    if name in zoo:
        return zoo[name]
    module, colon, function = name.partition(":")
    if not colon:
        known = ", ".join([SMALL, *zoo])
        raise ValueError(f'--network is "{name}", expected one of {known}, or module:function')
    try:
        own: Builder = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"--network {name} cannot be found: {error}") from None
    return own


def weights_file(options: Options) -> Path:
    """The file of weights to start from, which is fetched if it is that of the zoo.

    Raises:
        ValueError: the zoo has no weights of this network.
        OSError: they cannot be fetched.
    """
    return (
        fetch_weights(find_network(options.network)) if options.weights == PRETRAINED else Path(options.weights or "")
    )
