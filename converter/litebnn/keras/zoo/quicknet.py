"""QuickNet: a residual network that is fast with Larq Compute Engine, and with litebnn.

Source: Bannink et al., "Larq Compute Engine", section 4, https://arxiv.org/abs/2011.09398
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from keras import layers

from litebnn.keras.layers import BatchNormalization, QuantConv2D, QuantDense, QuantDepthwiseConv2D
from litebnn.keras.zoo.blocks import batch_norm, clipped_conv, global_average, softmax

_CLIP_VALUE = 1.25


@keras.saving.register_keras_serializable(package="litebnn")
class Blur(keras.initializers.Initializer):
    """The kernel of a depthwise 3×3 convolution that averages with binomial weights.

    Source: Zhang, "Making Convolutional Networks Shift-Invariant Again", https://arxiv.org/abs/1904.11486
    """

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        row = np.array([1, 2, 1]) / 4
        kernel = np.broadcast_to(np.outer(row, row)[:, :, None, None], shape)
        return keras.ops.convert_to_tensor(kernel, dtype=dtype or keras.config.floatx())


@dataclass(frozen=True)
class QuickNet:
    """QuickNet: sections of binary 3×3 convolutions, each with a shortcut, and float layers between sections that halve
    the image size."""

    blocks: tuple[int, ...] = (4, 4, 4, 4)
    filters: tuple[int, ...] = (64, 128, 256, 512)

    def features(self, images: Any) -> Any:
        x = _stem(images, self.filters[0])
        for blocks, filters in zip(self.blocks, self.filters, strict=True):
            if filters != x.shape[-1]:
                x = _transition(x, filters)
            for _ in range(blocks):
                x = _residual(x)
        return x

    def top(self, features: Any, num_classes: int) -> Any:
        averages = global_average(layers.ReLU()(features))
        return softmax(QuantDense(num_classes, kernel_initializer="glorot_normal")(averages))


def _stem(images: Any, filters: int) -> Any:
    """Three float layers that reduce the height and the width of images to a quarter."""
    strided: dict[str, Any] = {"padding": "same", "strides": 2, "use_bias": False}
    x = QuantConv2D(filters // 4, 3, kernel_initializer="he_normal", **strided)(images)
    x = layers.ReLU()(BatchNormalization()(x))
    x = BatchNormalization(scale=False, center=False)(QuantDepthwiseConv2D(3, **strided)(x))
    return BatchNormalization()(QuantConv2D(filters, 1, kernel_initializer="he_normal", use_bias=False)(x))


def _residual(x: Any) -> Any:
    return layers.add([batch_norm(clipped_conv(x, x.shape[-1], _CLIP_VALUE, activation="relu", pad_values=1.0)), x])


def _transition(x: Any, filters: int) -> Any:
    """A max pool of stride 1 and a blur of stride 2, then a float 1×1 convolution."""
    x = layers.MaxPooling2D(2, strides=1)(layers.ReLU()(x))
    x = layers.DepthwiseConv2D(
        3, strides=2, padding="same", use_bias=False, depthwise_initializer=Blur(), trainable=False
    )(x)
    return batch_norm(QuantConv2D(filters, 1, kernel_initializer="glorot_normal", use_bias=False)(x))
