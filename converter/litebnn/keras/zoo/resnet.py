"""Binary residual networks of 18 layers: Bi-Real Net, ResNetE and Real-to-Binary Net."""

from __future__ import annotations

from typing import Any

from keras import layers

from litebnn.keras.layers import QuantConv2D
from litebnn.keras.zoo.blocks import SMALL_IMAGE, batch_norm, clipped_conv, dense_top, global_average, large_image_stem

# The number of filters of each of the 16 binary convolutions. Each convolution has its own shortcut.
_FILTERS = (64,) * 4 + (128,) * 4 + (256,) * 4 + (512,) * 4


def _shortcut(x: Any, filters: int, pool_padding: str, norm: Any) -> Any:
    """The shortcut of a block: the block's input, or a float 1×1 convolution of its average pool if the block halves
    the image size.
    """
    if x.shape[-1] == filters:
        return x
    x = layers.AveragePooling2D(2, strides=2, padding=pool_padding)(x)
    return norm(layers.Conv2D(filters, 1, kernel_initializer="glorot_normal", use_bias=False)(x))


def _conv(x: Any, filters: int, input_quantizer: str, kernel_quantizer: str) -> Any:
    """A binary 3×3 convolution, which halves the image size if it has other filters than channels."""
    return QuantConv2D(
        filters,
        3,
        strides=1 if x.shape[-1] == filters else 2,
        padding="same",
        input_quantizer=input_quantizer,
        kernel_quantizer=kernel_quantizer,
        kernel_initializer="glorot_normal",
        kernel_constraint="weight_clip",
        use_bias=False,
    )(x)


class BiRealNet:
    """Bi-Real Net. Source: Liu et al., "Bi-Real Net", https://arxiv.org/abs/1808.00278"""

    def features(self, images: Any) -> Any:
        x = layers.Conv2D(64, 7, strides=2, padding="same", kernel_initializer="glorot_normal", use_bias=False)(images)
        x = layers.MaxPooling2D(3, strides=2, padding="same")(_bireal_norm(x))
        for filters in _FILTERS:
            x = self._block(x, filters)
        return x

    def _block(self, x: Any, filters: int) -> Any:
        shortcut = _shortcut(x, filters, "same", _bireal_norm)
        return layers.add([_bireal_norm(_conv(x, filters, "approx_sign", "magnitude_aware_sign")), shortcut])

    def top(self, features: Any, num_classes: int) -> Any:
        return dense_top(features, num_classes)


def _bireal_norm(x: Any) -> Any:
    return batch_norm(x, momentum=0.8, epsilon=1e-3)


class BinaryResNetE18:
    """Binary ResNet-E. Source: Bethge et al., "Back to Simplicity", https://arxiv.org/abs/1906.08637"""

    def features(self, images: Any) -> Any:
        x = large_image_stem(images, 64)
        if images.shape[1] is None or images.shape[1] >= SMALL_IMAGE:
            x = batch_norm(x)
        for filters in _FILTERS:
            shortcut = _shortcut(x, filters, "valid", batch_norm)
            strides = 1 if x.shape[-1] == filters else 2
            x = layers.add([batch_norm(clipped_conv(x, filters, 1.25, strides=strides)), shortcut])
        return layers.ReLU()(x)

    def top(self, features: Any, num_classes: int) -> Any:
        return dense_top(features, num_classes, "glorot_normal")


class RealToBinaryNet:
    """Real-to-Binary Net: a network whose convolutions' outputs are scaled by factors that depend on the convolutions'
    inputs.

    Source: Martinez et al., "Training binary neural networks with real-to-binary convolutions",
        https://openreview.net/forum?id=BJg4NgBKvH
    """

    def features(self, images: Any) -> Any:
        x = layers.Conv2D(64, 7, strides=2, padding="same", kernel_initializer="glorot_normal", use_bias=False)(images)
        x = layers.PReLU(shared_axes=[1, 2])(_real_to_binary_norm(x))
        x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
        for filters in _FILTERS:
            x = self._block(x, filters)
        return x

    def _block(self, x: Any, filters: int) -> Any:
        shortcut = _shortcut(x, filters, "same", _real_to_binary_norm)
        inputs = _real_to_binary_norm(x)
        scaled = layers.multiply([_conv(inputs, filters, "ste_sign", "ste_sign"), _scales(inputs, filters)])
        return layers.add([layers.PReLU(shared_axes=[1, 2])(scaled), shortcut])

    def top(self, features: Any, num_classes: int) -> Any:
        return dense_top(features, num_classes)


def _real_to_binary_norm(x: Any) -> Any:
    return batch_norm(x, momentum=0.99, epsilon=1e-3)


def _scales(x: Any, filters: int) -> Any:
    """A factor in (0, 1) for each filter. Two dense layers compute it from the averages of x."""
    arguments = {"kernel_initializer": "he_normal", "use_bias": False}
    averages = global_average(x)
    hidden = layers.Dense(x.shape[-1] // 8, activation="relu", **arguments)(averages)
    scales = layers.Dense(filters, activation="sigmoid", **arguments)(hidden)
    return layers.Reshape((1, 1, filters))(scales)
