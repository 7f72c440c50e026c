"""The network in Keras 3. Only quantization-aware training uses Keras 2, because tensorflow-model-optimization requires
it."""

import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
import tensorflow_model_optimization as tfmot
import tf_keras

import litebnn
import litebnn.keras as lq
from examples.compare.makers import (
    BATCH,
    CALIBRATION_IMAGES,
    CONVOLUTIONS,
    DENSE,
    EPOCHS_INT8,
    LEARNING_RATE,
    LEARNING_RATE_INT8,
    OnProgress,
)
from examples.mnist.data import SIZE, Digits

SHAPE = (SIZE, SIZE, 1)  # of one image


def make(digits: Digits, epochs: int, on_progress: OnProgress) -> Iterator[tuple[str, bytes]]:
    keras.utils.set_random_seed(1)
    network = float_network()
    train(network, keras, digits, epochs, LEARNING_RATE, lambda done: on_progress("float32", done))
    yield "float32", to_tflite(network)
    yield (
        "int8",
        to_tflite(
            network,
            optimizations=[tf.lite.Optimize.DEFAULT],
            representative_dataset=lambda: ([image[None]] for image in digits.train_images[:CALIBRATION_IMAGES]),
        ),
    )

    quantized = tfmot.quantization.keras.quantize_model(folded_network(network))
    train(quantized, tf_keras, digits, EPOCHS_INT8, LEARNING_RATE_INT8, lambda done: on_progress("int8 trained", done))
    yield "int8 trained", to_tflite(quantized, optimizations=[tf.lite.Optimize.DEFAULT])

    keras.utils.set_random_seed(1)
    network = binary_network()
    train(network, keras, digits, epochs, LEARNING_RATE, lambda done: on_progress("1-bit", done))
    yield "1-bit", bytes(litebnn.convert_keras_model(network))


def float_network() -> Any:
    options = {"use_bias": False}
    return make_network(
        lambda filters, _: keras.layers.Conv2D(filters, 3, **options),
        lambda units: keras.layers.Dense(units, **options),
        pool_first=False,
    )


def binary_network() -> Any:
    """The network with binary layers. The first convolution's input stays real, and pooling comes before the batch
    norm."""
    kernel = {"kernel_quantizer": "ste_sign", "kernel_constraint": "weight_clip", "use_bias": False}
    return make_network(
        lambda filters, sign: lq.layers.QuantConv2D(filters, 3, input_quantizer=sign, **kernel),
        lambda units: lq.layers.QuantDense(units, input_quantizer="ste_sign", **kernel),
        pool_first=True,
    )


def make_network(
    convolution: Callable[[int, str | None], Any], dense: Callable[[int], Any], *, pool_first: bool
) -> Any:
    """A network with the given layers. `convolution` gets the number of filters and the input quantizer, which is
    None for the layer that reads the image.
    """
    layers: list[Any] = [keras.Input(SHAPE)]
    for index, filters in enumerate(CONVOLUTIONS):
        pool = [keras.layers.MaxPooling2D()] if index < 2 else []
        norm = [keras.layers.BatchNormalization(scale=False)]
        after_convolution = [*pool, *norm] if pool_first else [*norm, *pool]
        layers += [convolution(filters, "ste_sign" if index else None), *after_convolution]
    layers.append(keras.layers.Flatten())
    for units in DENSE:
        layers += [dense(units), keras.layers.BatchNormalization(scale=False)]
    return keras.Sequential([*layers, keras.layers.Softmax()])


def folded_network(network: Any) -> Any:
    """The float network in Keras 2, with its batch norms folded into the weights and biases of the layers before them.

    The package tensorflow-model-optimization folds the batch norms of convolutions, but does not quantize dense layers
    that have a batch norm.
    """
    layers: list[Any] = [tf_keras.layers.InputLayer(SHAPE)]
    weights: list[Any] = []
    for layer in network.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            beta, mean, variance = layer.get_weights()
            scale = 1 / np.sqrt(variance + layer.epsilon)
            weights[-1] = [weights[-1] * scale, beta - mean * scale]
        elif isinstance(layer, keras.layers.Conv2D):
            layers.append(tf_keras.layers.Conv2D(layer.filters, layer.kernel_size))
            weights += layer.get_weights()
        elif isinstance(layer, keras.layers.Dense):
            layers.append(tf_keras.layers.Dense(layer.units))
            weights += layer.get_weights()
        else:
            layers.append(getattr(tf_keras.layers, type(layer).__name__)())
    folded = tf_keras.Sequential(layers)
    folded.set_weights([array for pair in weights for array in pair])
    return folded


def train(
    network: Any, api: Any, digits: Digits, epochs: int, learning_rate: float, on_epoch: Callable[[float], None]
) -> None:
    """Trains a network of Keras `api`, which is version 2 or 3; `on_epoch` gets the share of epochs that are done."""
    steps = epochs * -(-len(digits.train_labels) // BATCH)
    schedule = api.optimizers.schedules.CosineDecay(learning_rate, steps)
    network.compile(optimizer=api.optimizers.Adam(schedule), loss="sparse_categorical_crossentropy")
    report = api.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: on_epoch((epoch + 1) / epochs))
    network.fit(digits.train_images, digits.train_labels, BATCH, epochs, verbose=0, callbacks=[report])


def to_tflite(network: Any, **options: Any) -> bytes:
    """Returns the file that TensorFlow's converter writes with these options."""
    with tempfile.TemporaryDirectory() as folder:
        network.export(folder)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        for name, value in options.items():
            setattr(converter, name, value)
        return bytes(converter.convert())
