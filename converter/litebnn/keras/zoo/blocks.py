"""The interface of a network architecture (its features and its top layers), and layers that several networks use."""

from __future__ import annotations

from typing import Any, Protocol

from keras import layers

from litebnn.keras.constraints import WeightClip
from litebnn.keras.layers import BatchNormalization, QuantConv2D
from litebnn.keras.quantizers import SteSign

SMALL_IMAGE = 50  # images of fewer pixels a side go through a stem that keeps their size


class Architecture(Protocol):
    """A network in two parts: the layers that compute features, and the top layers, which classify."""

    def features(self, images: Any) -> Any:
        """Computes the features of images, which are [batch, height, width, 3]."""

    def top(self, features: Any, num_classes: int) -> Any:
        """Computes the probability of each class: [batch, num_classes]."""


def batch_norm(x: Any, *, momentum: float = 0.9, epsilon: float = 1e-5, **arguments: Any) -> Any:
    return BatchNormalization(momentum=momentum, epsilon=epsilon, **arguments)(x)


def clipped_conv(x: Any, filters: int, clip_value: float, **arguments: Any) -> Any:
    """A binary 3×3 convolution whose signs pass gradients up to a limit. The latent weights are clipped to the same
    limit."""
    return QuantConv2D(
        filters,
        3,
        padding="same",
        input_quantizer=SteSign(clip_value=clip_value),
        kernel_quantizer=SteSign(clip_value=clip_value),
        kernel_constraint=WeightClip(clip_value=clip_value),
        kernel_initializer="glorot_normal",
        use_bias=False,
        **arguments,
    )(x)


def global_average(x: Any) -> Any:
    """The average of each channel: [batch, channels].

    If the image size is known, this layer is an ordinary pooling. Its kernel runs faster than a reduction in TensorFlow
    Lite.
    """
    height, width = x.shape[1:3]
    if height is None or width is None:
        return layers.GlobalAveragePooling2D()(x)
    return layers.Flatten()(layers.AveragePooling2D((height, width))(x))


def softmax(logits: Any) -> Any:
    """Computes the probabilities of logits, in float32 for any policy of mixed precision."""
    return layers.Activation("softmax", dtype="float32")(logits)


def dense_top(features: Any, num_classes: int, kernel_initializer: str = "glorot_uniform") -> Any:
    """Computes the probabilities of classes with a dense layer of the averages of channels."""
    return softmax(layers.Dense(num_classes, kernel_initializer=kernel_initializer)(global_average(features)))


def large_image_stem(images: Any, filters: int) -> Any:
    """A 7×7 convolution and a max pool, which make images four times smaller. Small images keep their size."""
    arguments = {"padding": "same", "kernel_initializer": "he_normal", "use_bias": False}
    if images.shape[1] is not None and images.shape[1] < SMALL_IMAGE:
        return layers.Conv2D(filters, 3, **arguments)(images)
    x = batch_norm(layers.Conv2D(filters, 7, strides=2, **arguments)(images))
    return layers.MaxPooling2D(3, strides=2, padding="same")(layers.ReLU()(x))
