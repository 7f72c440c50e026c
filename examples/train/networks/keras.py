"""A small network in Keras."""

from __future__ import annotations

from typing import Any

import keras
from keras import layers

from litebnn.keras.layers import QuantConv2D

WIDTHS = (32, 64, 128)
_BINARY: dict[str, Any] = {
    "input_quantizer": "ste_sign",
    "kernel_quantizer": "ste_sign",
    "kernel_constraint": "weight_clip",
    "padding": "same",
    "pad_values": 1.0,
    "use_bias": False,
}


def small(classes: int, size: int) -> keras.Model:
    """A network from images [n, size, size, 3] to probabilities [n, classes], in three residual blocks of 32 to 128
    channels."""
    images = keras.Input((size, size, 3))
    x = layers.Conv2D(WIDTHS[0], 3, strides=2, padding="same", use_bias=False)(images)
    x = layers.BatchNormalization(momentum=0.9)(x)
    for width in WIDTHS:
        if width != x.shape[-1]:
            x = layers.BatchNormalization(momentum=0.9)(QuantConv2D(width, 3, strides=2, **_BINARY)(x))
        x = layers.add([x, layers.BatchNormalization(momentum=0.9)(QuantConv2D(width, 3, **_BINARY)(x))])
    x = layers.GlobalAveragePooling2D()(layers.ReLU()(x))
    return keras.Model(images, layers.Activation("softmax", dtype="float32")(layers.Dense(classes)(x)))
