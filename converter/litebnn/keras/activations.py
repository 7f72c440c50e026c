"""Activations that keep values near -1 and 1, so that the gradient of the next layer's sign does not vanish."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops


def hard_tanh(x: Any) -> Any:
    """Clips x to [-1, 1]."""
    return ops.clip(x, -1.0, 1.0)


def leaky_tanh(x: Any, alpha: float = 0.2) -> Any:
    """The identity in [-1, 1], with the slope `alpha` outside of [-1, 1]."""
    clipped = ops.clip(x, -1.0, 1.0)
    return clipped + alpha * (x - clipped)


for _function in (hard_tanh, leaky_tanh):
    keras.saving.register_keras_serializable(package="litebnn")(_function)
