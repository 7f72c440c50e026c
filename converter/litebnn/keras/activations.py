"""Activations that keep values near -1 and 1, where the following binary layer's signs are."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops


def hard_tanh(x: Any) -> Any:
    """x, clipped to [-1, 1]."""
    return ops.clip(x, -1.0, 1.0)


def leaky_tanh(x: Any, alpha: float = 0.2) -> Any:
    """x, with the slope `alpha` outside of [-1, 1]."""
    clipped = ops.clip(x, -1.0, 1.0)
    return clipped + alpha * (x - clipped)


for _function in (hard_tanh, leaky_tanh):
    keras.saving.register_keras_serializable(package="litebnn")(_function)
