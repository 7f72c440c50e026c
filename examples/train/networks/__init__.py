"""Finds networks by name: the small one of this folder's modules, those of the zoo, or the user's own.

Each framework has a module in this folder with the function `small(classes, size)`, a network for trials on small
images.
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
    """Finds the function of (classes, size) that makes a network with random weights.

    `name` is "small", a name of `zoo`, or module:function. `framework` is the name of a module in this folder. `zoo`
    maps the names of the zoo's networks to their functions.

    Raises:
        ValueError: no network has this name.
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
    """The path of the file of initial weights. Weights of the zoo are fetched.

    Raises:
        ValueError: the zoo has no weights of this network.
        OSError: the weights cannot be fetched.
    """
    return (
        fetch_weights(find_network(options.network)) if options.weights == PRETRAINED else Path(options.weights or "")
    )
