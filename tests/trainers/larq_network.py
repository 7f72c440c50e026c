"""Builds a random network in larq with the given weights."""

from __future__ import annotations

from typing import Any

import larq as lq
import numpy as np
import tensorflow as tf

from tests.trainers.random_networks import CLASSES, EPSILON, INPUT_CHANNELS, SIZE, Network

# Quantizers that larq lacks. For each there is a quantizer of larq that gives the same signs at inference.
SIGNS = {"reste_sign": "ste_sign"}
KERAS_AXES = (2, 3, 1, 0)


def larq_network(network: Network) -> Any:
    """The network as a Keras model, from images [n, height, width, channels] to scores [n, classes]."""
    layers, weights = tf.keras.layers, network.weights

    def norm(x: Any, values: tuple[Any, ...]) -> Any:
        layer = layers.BatchNormalization(epsilon=EPSILON)
        result = layer(x)
        layer.set_weights(values)
        return result

    def layer_of(x: Any, layer: Any, *values: Any) -> Any:
        result = layer(x)
        layer.set_weights(values)
        return result

    x = image = tf.keras.Input((SIZE, SIZE, INPUT_CHANNELS))
    stem = layers.Conv2D(len(weights["stem"]), 3, padding="same", use_bias=False)
    x = norm(layer_of(x, stem, weights["stem"].transpose(KERAS_AXES)), weights["stem_norm"])
    for conv, kernel, values in zip(network.convs, weights["convs"], weights["norms"], strict=True):
        weight_sign = "magnitude_aware_sign" if conv.weight_scale else conv.weight_sign
        layer = lq.layers.QuantConv2D(
            conv.out_channels,
            conv.kernel,
            conv.stride,
            conv.padding,
            pad_values=conv.pad_values,
            groups=conv.groups,
            use_bias=False,
            input_quantizer=SIGNS.get(conv.input_sign, conv.input_sign),
            kernel_quantizer=SIGNS.get(weight_sign, weight_sign),
        )
        y = layer_of(x, layer, kernel.transpose(KERAS_AXES))
        y = layers.MaxPooling2D(conv.pool)(y) if conv.pool > 1 else y
        y = norm(y, values)
        x = layers.add([x, y]) if conv.residual else y
    dense = weights["dense"].T
    if network.flatten:
        size = network.size
        dense = dense.reshape(-1, size, size, network.hidden).transpose(1, 2, 0, 3).reshape(dense.shape)
    x = layers.Flatten()(x) if network.flatten else layers.GlobalAveragePooling2D()(x)
    sign = SIGNS.get(network.dense_sign, network.dense_sign)
    quantized = {"input_quantizer": sign, "kernel_quantizer": "ste_sign", "use_bias": False}
    x = norm(layer_of(x, lq.layers.QuantDense(network.hidden, **quantized), dense), weights["dense_norm"])
    x = layer_of(x, layers.Dense(CLASSES), np.ascontiguousarray(weights["last"].T), weights["last_bias"])
    return tf.keras.Model(image, x)
