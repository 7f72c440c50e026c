"""Binary forms of AlexNet: BinaryAlexNet, XNOR-Net and DoReFa-Net."""

from __future__ import annotations

from typing import Any

import keras
from keras import layers, ops

from litebnn.keras import math
from litebnn.keras.layers import QuantConv2D, QuantDense
from litebnn.keras.quantizers import DoReFa, Quantizer, ste_sign, with_gradient
from litebnn.keras.zoo.blocks import batch_norm, softmax


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


class BinaryAlexNet:
    """Binary AlexNet. Source: Hubara et al., "Binarized Neural Networks",
    https://papers.nips.cc/paper/6573-binarized-neural-networks"""

    def features(self, images: Any) -> Any:
        x = self._block(images, 64, 11, strides=4, pools=True, input_quantizer=None)
        x = self._block(x, 192, 5, pools=True)
        x = self._block(x, 384, 3)
        x = self._block(x, 384, 3)
        return self._block(x, 256, 3, pools=True)

    def top(self, features: Any, num_classes: int) -> Any:
        height, width, channels = features.shape[1:]
        x = layers.Reshape((1, 1, height * width * channels))(features)
        for units in (4096, 4096, num_classes):
            x = self._block(x, units, 1)
        return softmax(layers.Flatten()(x))

    def _block(self, x: Any, filters: int, size: int, pools: bool = False, **arguments: Any) -> Any:
        signs = {"input_quantizer": "ste_sign", "kernel_quantizer": "ste_sign", "kernel_constraint": "weight_clip"}
        x = QuantConv2D(filters, size, padding="same", use_bias=False, **{**signs, **arguments})(x)
        if pools:
            x = layers.MaxPooling2D(3, strides=2)(x)
        return batch_norm(x, epsilon=1e-3, scale=False)


class XNORNet:
    """XNOR-Net. Source: Rastegari et al., "XNOR-Net", https://arxiv.org/abs/1603.05279"""

    def features(self, images: Any) -> Any:
        x = layers.Conv2D(96, 11, strides=4, padding="same", use_bias=False, kernel_regularizer=_weight_decay())(images)
        x = layers.ReLU()(batch_norm(x, scale=False))
        x = self._norm(layers.MaxPooling2D(3, strides=2)(x))
        x = self._block(x, 256, 5, pools=True)
        x = self._block(x, 384, 3)
        x = self._block(x, 384, 3)
        x = self._block(x, 256, 3, pools=True)
        return self._block(x, 4096, 6, padding="valid")

    def top(self, features: Any, num_classes: int) -> Any:
        x = layers.ReLU()(self._block(features, 4096, 1, padding="valid", epsilon=1e-3))
        logits = layers.Dense(num_classes, use_bias=False, kernel_regularizer=_weight_decay())(layers.Flatten()(x))
        return softmax(logits)

    def _block(
        self, x: Any, filters: int, size: int, padding: str = "same", pools: bool = False, epsilon: float = 1e-4
    ) -> Any:
        x = QuantConv2D(
            filters,
            size,
            padding=padding,
            input_quantizer="ste_sign",
            kernel_quantizer=ScaledSign(),
            kernel_constraint="weight_clip",
            kernel_regularizer=_weight_decay(),
            use_bias=False,
        )(x)
        if pools:
            x = layers.MaxPooling2D(3, strides=2)(x)
        return self._norm(x, epsilon)

    def _norm(self, x: Any, epsilon: float = 1e-4) -> Any:
        return batch_norm(x, epsilon=epsilon, scale=False)


def _weight_decay() -> Any:
    return keras.regularizers.L2(5e-7)


class DoReFaNet:
    """DoReFa-Net: a network with weights of one bit and activations of two bits.

    Source: Zhou et al., "DoReFa-Net", https://arxiv.org/abs/1606.06160
    """

    def features(self, images: Any) -> Any:
        x = layers.Conv2D(96, 12, strides=4)(images)
        x = self._conv_block(x, 256, 5, pool="same")
        x = self._conv_block(x, 384, 3, pool="same")
        x = self._conv_block(x, 384, 3)
        return self._conv_block(x, 256, 3, pool="valid")

    def top(self, features: Any, num_classes: int) -> Any:
        x = layers.Flatten()(features)
        for _ in range(2):
            x = self._norm(QuantDense(4096, use_bias=False, **self._quantizers())(x))
        return softmax(layers.Dense(num_classes)(ops.clip(x, 0.0, 1.0)))

    def _conv_block(self, x: Any, filters: int, size: int, pool: str | None = None) -> Any:
        x = self._norm(QuantConv2D(filters, size, padding="same", use_bias=False, **self._quantizers())(x))
        return layers.MaxPooling2D(3, strides=2, padding=pool)(x) if pool else x

    def _quantizers(self) -> dict[str, Any]:
        # This constraint leaves the latent weights unchanged. They have a gradient everywhere, so they need no
        # clipping.
        unchanged = keras.constraints.Constraint()
        return {
            "input_quantizer": DoReFa(k_bit=2),
            "kernel_quantizer": LayerScaledSign(),
            "kernel_constraint": unchanged,
        }

    def _norm(self, x: Any) -> Any:
        return batch_norm(x, epsilon=1e-4, scale=False)
