"""Constraints on latent weights."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="litebnn")
class WeightClip(keras.constraints.Constraint):
    """Clips weights to [-clip_value, clip_value] after each step, because the gradient of a weight far from 0 is
    zero.

    The layers of `litebnn.keras.layers` accept this constraint by its name too: `kernel_constraint="weight_clip"`.
    """

    def __init__(self, clip_value: float = 1.0) -> None:
        self.clip_value = clip_value

    def __call__(self, value: Any) -> Any:
        return ops.clip(value, -self.clip_value, self.clip_value)

    def get_config(self) -> dict[str, Any]:
        return {"clip_value": self.clip_value}


weight_clip = WeightClip
