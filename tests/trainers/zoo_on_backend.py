"""Runs networks of litebnn.keras.zoo with few layers on the Keras 3 backend that the variable KERAS_BACKEND names.

Usage:

    python -m tests.trainers.zoo_on_backend OUTPUTS.npz

It is a separate program, because a process has only one backend. JAX needs JAX_ENABLE_X64=1.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np

from litebnn.keras import zoo
from litebnn.keras.zoo import alexnet, quicknet, resnet
from litebnn.keras.zoo.blocks import Architecture, softmax

IMAGES, CLASSES = (2, 32, 32, 3), 7


class OneBlock(resnet.RealToBinaryNet):
    """A Real-to-Binary Net with one of its 16 blocks, because JAX compiles each layer."""

    def features(self, images: Any) -> Any:
        return self._block(keras.layers.Conv2D(32, 3)(images), 64)


class OneLayer(alexnet.XNORNet):
    """A binary layer of XNOR-Net, and its classifier's last layers."""

    def features(self, images: Any) -> Any:
        return self._block(images, 32, 5, pools=True)

    def top(self, features: Any, num_classes: int) -> Any:
        return softmax(keras.layers.Dense(num_classes)(keras.layers.Flatten()(features)))


ARCHITECTURES: dict[str, Architecture] = {
    "QuickNet": quicknet.QuickNet(blocks=(1, 1), filters=(32, 64)),
    "RealToBinaryNet": OneBlock(),
    "XNORNet": OneLayer(),
}


@contextmanager
def in_float64() -> Iterator[None]:
    """Makes Keras' layers and inputs compute in float64.

    Layers read the global policy, which Keras makes from floatx only once. Therefore floatx and the policy are set.
    """
    floatx, policy = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    try:
        yield
    finally:
        keras.config.set_floatx(floatx)
        keras.config.set_dtype_policy(policy)


def outputs() -> dict[str, Any]:
    """The features and the probabilities of each network for seeded random images and weights, and a preprocessed
    photograph.

    The networks compute in float64, so that rounding flips no sign.
    """
    rng = np.random.default_rng(0)
    photo = rng.integers(0, 256, (40, 60, 3)).astype(np.uint8)
    found = {"photo": zoo.preprocess_input(keras.ops.convert_to_tensor(photo))}
    with in_float64():
        for name, architecture in ARCHITECTURES.items():
            images = keras.Input(IMAGES[1:])
            features = architecture.features(images)
            model = keras.Model(images, [features, architecture.top(features, CLASSES)])
            for variable in model.variables:
                variable.assign(random_weights(rng, tuple(variable.shape)))
            values = model(keras.ops.convert_to_tensor(rng.standard_normal(IMAGES)), training=False)
            found |= {f"{name}'s features": values[0], f"{name}'s probabilities": values[1]}
    return {name: keras.ops.convert_to_numpy(value) for name, value in found.items()}


def random_weights(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Random values: positive for vectors (scales, biases, means, variances), normally distributed for kernels."""
    if len(shape) == 1:
        return rng.uniform(0.2, 1.0, shape)
    return rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))


if __name__ == "__main__":
    np.savez(sys.argv[1], **outputs())
