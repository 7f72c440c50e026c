"""The two step functions of binary networks: `sign` and `heaviside`."""

from __future__ import annotations

from typing import Any

from keras import ops


def sign(x: Any) -> Any:
    """Returns -1 where x < 0, else 1, in the type of x; unlike `keras.ops.sign` it is never 0."""
    return ops.sign(ops.sign(x) + 0.1)


def heaviside(x: Any) -> Any:
    """Returns 1 where x > 0, else 0, in the type of x."""
    return ops.sign(ops.relu(x))
