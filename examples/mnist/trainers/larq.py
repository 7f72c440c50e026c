"""The binarized network of larq's MNIST walkthrough, trained with larq, which needs Keras 2."""

import os
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # read when TensorFlow is imported
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import larq as lq
import numpy as np
import tensorflow as tf

import litebnn
from examples.mnist.data import SIZE, Digits
from examples.mnist.trainers import OnEpoch, Predict

FRAMEWORK = "Keras"
BATCH = 64
LEARNING_RATE = 0.01


def make_network() -> Any:
    """The network, from images float32 [n, 28, 28, 1] in [-1, 1] to class probabilities float32 [n, 10]."""
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


def train(digits: Digits, epochs: int, on_epoch: OnEpoch) -> Any:
    tf.keras.utils.set_random_seed(1)
    network = make_network()
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
    return network


def predict(network: Any) -> Predict:
    compiled = tf.function(network, autograph=False)
    return lambda images: np.asarray(compiled(images, training=False))


def save(network: Any, folder: Path) -> Path:
    path = folder / "digits.keras"
    network.save(path)
    return path


def convert_float(network: Any) -> bytes:
    return bytes(tf.lite.TFLiteConverter.from_keras_model(network).convert())


def convert(network: Any) -> bytes:
    return bytes(litebnn.convert_keras_model(network))
