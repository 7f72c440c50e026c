"""Quantizers of weights that only networks of the zoo use."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from litebnn.keras import math
from litebnn.keras.quantizers import Quantizer, ste_sign, with_gradient


@keras.saving.register_keras_serializable(package="litebnn")
class ScaledSign(Quantizer):
    """The sign times the mean of |x| in each output channel. Before that, x is clipped to [-1, 1].

    The gradient is that of `ste_sign` times the mean, plus the gradient of the mean.

    Source: Rastegari et al., "XNOR-Net", section 3.1, https://arxiv.org/abs/1603.05279
    """

    precision = 1

    def quantized_values(self, inputs: Any) -> Any:
        clipped = ops.clip(inputs, -1.0, 1.0)
        scale = ops.mean(ops.abs(clipped), axis=tuple(range(len(inputs.shape) - 1)), keepdims=True)
        return scale * ste_sign(clipped)


@keras.saving.register_keras_serializable(package="litebnn")
class LayerScaledSign(Quantizer):
    """The sign times the mean of |x| over the whole layer. The gradient passes through the quantizer unchanged.

    Source: Zhou et al., "DoReFa-Net", section 2.3, https://arxiv.org/abs/1606.06160
    """

    precision = 1

    def quantized_values(self, inputs: Any) -> Any:
        return with_gradient(lambda x: math.sign(x) * ops.mean(ops.abs(x)), lambda _, dy: dy, inputs)
