"""Exports small Keras 3 networks, one for each way of writing a sign with `keras.ops`.

Usage: KERAS_BACKEND=torch python tests/golden_trainers/make_keras_models.py [NAME ...]

The script needs Keras 3.15, and torch 2.13 with litert-torch 0.10 or TensorFlow 2.21. It writes the files into its own
folder.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import layers, ops

FOLDER = Path(__file__).parent
Spelling = Callable[[Any], Any]


def where(x):
    return ops.where(x >= 0, 1.0, -1.0)


def one_minus_magnitude(x):
    sign = ops.sign(x)
    return x + ops.stop_gradient(-x + (sign + (1.0 - ops.abs(sign))))


SPELLINGS: dict[str, Spelling] = {
    "keras_where": lambda x: ops.where(x >= 0, ops.ones_like(x), -ops.ones_like(x)),
    "keras_sign_of_sign": lambda x: ops.sign(ops.sign(x) + 0.1),
    "keras_added_to_itself": lambda x: x + ops.stop_gradient(where(x) - x),
    "keras_one_minus_magnitude": one_minus_magnitude,
}


class BinaryConv(layers.Conv2D):
    def __init__(self, *sizes: int, sign: Spelling, **options: Any) -> None:
        super().__init__(*sizes, use_bias=False, **options)
        self.sign = sign

    def call(self, inputs):
        strides = list(self.strides)
        kernel = where(self.kernel)
        return ops.conv(self.sign(inputs), kernel, strides=strides, padding=self.padding, data_format=self.data_format)


def network(sign: Spelling) -> keras.Model:
    """A network of a float layer, two binary ones with batch norms and a max pool, and a float one."""
    model = keras.Sequential([keras.Input((8, 8, 3), batch_size=1)])
    model.add(layers.Conv2D(8, 3, padding="same", use_bias=False))
    model.add(layers.BatchNormalization())
    model.add(BinaryConv(8, 3, padding="same", sign=sign))
    model.add(layers.BatchNormalization())
    model.add(layers.MaxPool2D())
    model.add(BinaryConv(16, 3, padding="same", sign=sign))
    for layer in (layers.BatchNormalization(), layers.GlobalAveragePooling2D(), layers.Dense(5)):
        model.add(layer)
    return model


def export(name: str) -> None:
    keras.utils.set_random_seed(3)
    model = network(SPELLINGS[name])
    rng = np.random.default_rng(1)
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            gamma, beta, mean, variance = layer.get_weights()
            layer.set_weights([*(rng.standard_normal(each.shape) for each in (gamma, beta, mean)), variance])
    model.export(str(FOLDER / f"{name}.tflite"), format="litert", verbose=False)


def main() -> None:
    for name in sys.argv[1:] or SPELLINGS:
        export(name)


if __name__ == "__main__":
    main()
