"""Keras's convolutions and dense layer with quantizers, with Larq's names and arguments.

Each layer takes the arguments of the Keras layer of its name, and some in addition. `input_quantizer` quantizes the
layer's inputs, and `kernel_quantizer` the weights. `depthwise_quantizer` and `pointwise_quantizer` are for the kernels
to which Keras gives these names. `pad_values` is the padding value if padding="same", 0 by default. 1 and -1 keep the
padding of signs binary.

A quantizer is an object or a name of `litebnn.keras.quantizers`. A constraint may be "weight_clip", and an activation
may be the name of a quantizer. Weights keep their latent values, which are trained and saved; `context.quantized_scope`
shows the quantized values.

    >>> layer = QuantDense(16, input_quantizer="ste_sign", kernel_quantizer="ste_sign", kernel_constraint="weight_clip")
    >>> layer(numpy.ones((1, 32))).shape
    (1, 16)

Keras 3 has no locally connected layers, so this module has none either.
"""

from __future__ import annotations

from typing import Any, ClassVar

import keras

from litebnn.keras.quantized_layer import QuantizedLayer, SamePadding

Sizes = int | tuple[int, ...]
_SEPARABLE_QUANTIZERS = {"depthwise_kernel": "depthwise_quantizer", "pointwise_kernel": "pointwise_quantizer"}


class _Convolution(QuantizedLayer, SamePadding):
    """A mixin that a layer lists before a Keras convolution among its base classes. The layer then takes the
    convolution's arguments in Larq's order.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Sizes,
        strides: Sizes = 1,
        padding: str = "valid",
        pad_values: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(filters, kernel_size, strides=strides, padding=padding, pad_values=pad_values, **kwargs)


@keras.saving.register_keras_serializable(package="litebnn")
class QuantDense(QuantizedLayer, keras.layers.Dense):
    """A dense layer: [..., n] to [..., units]."""


@keras.saving.register_keras_serializable(package="litebnn")
class QuantConv1D(_Convolution, keras.layers.Conv1D):
    """A convolution of sequences: [batch, steps, channels] to [batch, new steps, filters]."""


@keras.saving.register_keras_serializable(package="litebnn")
class QuantConv2D(_Convolution, keras.layers.Conv2D):
    """A convolution of images: [batch, height, width, channels] to [batch, new height, new width, filters]."""


@keras.saving.register_keras_serializable(package="litebnn")
class QuantConv3D(_Convolution, keras.layers.Conv3D):
    """A convolution of volumes: [batch, depth, height, width, channels] to [batch, three new sizes, filters]."""


@keras.saving.register_keras_serializable(package="litebnn")
class QuantDepthwiseConv2D(QuantizedLayer, SamePadding, keras.layers.DepthwiseConv2D):
    """A convolution of each channel by itself: [batch, height, width, channels] to more channels."""

    weight_quantizers: ClassVar[dict[str, str]] = {"kernel": "depthwise_quantizer"}

    def __init__(
        self,
        kernel_size: Sizes,
        strides: Sizes = (1, 1),
        padding: str = "valid",
        pad_values: float = 0.0,
        depth_multiplier: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            kernel_size,
            strides=strides,
            padding=padding,
            pad_values=pad_values,
            depth_multiplier=depth_multiplier,
            **kwargs,
        )


@keras.saving.register_keras_serializable(package="litebnn")
class QuantSeparableConv1D(_Convolution, keras.layers.SeparableConv1D):
    """A convolution of each channel, then one of size 1: [batch, steps, channels] to [batch, new steps, filters]."""

    weight_quantizers = _SEPARABLE_QUANTIZERS


@keras.saving.register_keras_serializable(package="litebnn")
class QuantSeparableConv2D(_Convolution, keras.layers.SeparableConv2D):
    """A convolution of each channel, then one of size 1×1: [batch, height, width, channels] to [batch, …, filters]."""

    weight_quantizers = _SEPARABLE_QUANTIZERS


@keras.saving.register_keras_serializable(package="litebnn")
class QuantConv2DTranspose(QuantizedLayer, keras.layers.Conv2DTranspose):
    """A transposed convolution of images: [batch, height, width, channels] to [batch, two new sizes, filters]."""


@keras.saving.register_keras_serializable(package="litebnn")
class QuantConv3DTranspose(QuantizedLayer, keras.layers.Conv3DTranspose):
    """A transposed convolution of volumes: [batch, three sizes, channels] to [batch, three new sizes, filters]."""


@keras.saving.register_keras_serializable(package="litebnn")
class BatchNormalization(keras.layers.BatchNormalization):
    """Keras's batch normalization, [..., channels], which on TensorFlow gives images the same bits as Keras 2.

    Keras 2 took TensorFlow's fused op, which computes (x - mean) * factor + beta. Keras 3 computes x * factor + (beta -
    mean * factor). The two formulas round differently, and a value near 0 may get another sign.

        >>> BatchNormalization()(numpy.ones((1, 8, 8, 32), "float32")).shape
        (1, 8, 8, 32)
    """

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        # TensorFlow's `fused_batch_norm` is used only for images (4 dimensions, channels last) with float32 parameters.
        is_fused = len(inputs.shape) == 4 and self.axis in (-1, 3) and self.variable_dtype == "float32"
        if keras.backend.backend() != "tensorflow" or not is_fused or (training and self.trainable):
            return super().call(inputs, training=training, mask=mask)
        import tensorflow as tf

        ones = keras.ops.ones_like(self.moving_mean)
        outputs, *_ = tf.compat.v1.nn.fused_batch_norm(
            keras.ops.cast(inputs, "float32"),
            self.gamma if self.scale else ones,
            self.beta if self.center else 0 * ones,
            self.moving_mean,
            self.moving_variance,
            self.epsilon,
            is_training=False,
        )
        return keras.ops.cast(outputs, self.compute_dtype)
