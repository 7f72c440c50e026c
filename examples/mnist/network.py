"""The binarized network of larq's MNIST walkthrough, and its training."""

import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # larq needs Keras 2; read when TensorFlow is imported
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import larq as lq
import tensorflow as tf

from examples.mnist.data import SIZE, Digits

BATCH = 64
LEARNING_RATE = 0.01


def make_network() -> Any:
    """The network: images float32 [n, 28, 28, 1] in [-1, 1] to class probabilities float32 [n, 10]."""
    kernel: dict[str, Any] = {"kernel_quantizer": "ste_sign", "kernel_constraint": "weight_clip", "use_bias": False}
    binary = {"input_quantizer": "ste_sign", **kernel}
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            lq.layers.QuantConv2D(32, 3, **kernel, input_shape=(SIZE, SIZE, 1)),
            layers.MaxPooling2D(2),
            layers.BatchNormalization(scale=False),
            lq.layers.QuantConv2D(64, 3, **binary),
            layers.MaxPooling2D(2),
            layers.BatchNormalization(scale=False),
            lq.layers.QuantConv2D(64, 3, **binary),
            layers.BatchNormalization(scale=False),
            layers.Flatten(),
            lq.layers.QuantDense(64, **binary),
            layers.BatchNormalization(scale=False),
            lq.layers.QuantDense(10, **binary),
            layers.BatchNormalization(scale=False),
            layers.Activation("softmax"),
        ]
    )


def train(network: Any, digits: Digits, epochs: int, on_epoch: Callable[[int, float], None]) -> None:
    """Trains `network` in place; `on_epoch` gets the number of epochs done and the training accuracy."""
    tf.keras.utils.set_random_seed(1)
    steps = epochs * -(-len(digits.train_labels) // BATCH)
    network.compile(
        optimizer=tf.keras.optimizers.Adam(tf.keras.optimizers.schedules.CosineDecay(LEARNING_RATE, steps)),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    report = tf.keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: on_epoch(epoch + 1, float(logs["accuracy"]))
    )
    network.fit(digits.train_images, digits.train_labels, BATCH, epochs, verbose=0, callbacks=[report])
