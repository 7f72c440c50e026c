"""The binarized network of larq's MNIST walkthrough, trained with litebnn.keras on Keras 3."""

import os
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "tensorflow")  # read when Keras is imported
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

import litebnn
import litebnn.keras as lq
from examples.mnist.data import SIZE, Digits
from examples.mnist.trainers import OnEpoch, Predict
from litebnn.frontends.keras import keras_to_tflite

FRAMEWORK = "Keras 3"
BATCH = 64
LEARNING_RATE = 0.01


def make_network() -> Any:
    """The network, from images float32 [n, 28, 28, 1] in [-1, 1] to class probabilities float32 [n, 10]."""
    kernel: dict[str, Any] = {"kernel_quantizer": "ste_sign", "kernel_constraint": "weight_clip", "use_bias": False}
    binary = {"input_quantizer": "approx_sign", **kernel}
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((SIZE, SIZE, 1)),
            lq.layers.QuantConv2D(32, 3, **kernel),
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


class MovedDigits(keras.utils.PyDataset):
    """Batches of digits in random order. Each batch is shifted by up to a pixel, so that few digits suffice."""

    def __init__(self, digits: Digits) -> None:
        super().__init__()
        self.digits = digits
        self.rng = np.random.default_rng(1)
        self.on_epoch_end()

    def __len__(self) -> int:
        return -(-len(self.digits.train_labels) // BATCH)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        chosen = self.order[index * BATCH : (index + 1) * BATCH]
        moved = np.roll(self.digits.train_images[chosen], self.rng.integers(-1, 2, 2), axis=(1, 2))
        return moved, self.digits.train_labels[chosen]

    def on_epoch_end(self) -> None:
        self.order = self.rng.permutation(len(self.digits.train_labels))


def train(digits: Digits, epochs: int, on_epoch: OnEpoch) -> Any:
    keras.utils.set_random_seed(1)
    network, batches = make_network(), MovedDigits(digits)
    network.compile(
        optimizer=keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(LEARNING_RATE, epochs * len(batches))),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    report = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: on_epoch(epoch + 1, float(logs["accuracy"]))
    )
    network.fit(batches, epochs=epochs, verbose=0, callbacks=[report])
    return network


def predict(network: Any) -> Predict:
    return lambda images: np.asarray(network.predict_on_batch(images))


def save(network: Any, folder: Path) -> Path:
    path = folder / "digits.keras"
    network.save(path)
    return path


def convert_float(network: Any) -> bytes:
    return keras_to_tflite(network)


def convert(network: Any) -> bytes:
    return bytes(litebnn.convert_keras_model(network))
