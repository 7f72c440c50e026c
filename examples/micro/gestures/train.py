"""Trains the gestures network with litebnn.keras, and writes it as a .tflite file with int8 inputs and outputs.

python -m examples.micro.gestures.train [--epochs=40] [--output=gestures.tflite]
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "tensorflow")  # read when Keras is imported
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

import litebnn
import litebnn.keras as lq
from examples.micro.gestures.data import NAMES, SAMPLES, Gestures, made_gestures
from litebnn.files import write_whole

TRAINED_ON, TESTED_ON = 8000, 1000
# The seeds of the training set and of the test set.
TRAINING, TEST = 1, 2
# The number of gestures on which the conversion measures the ranges of values for the int8 layers.
SHOWN = 64


def make_network() -> Any:
    """The network, from traces float32 [n, 64, 3, 1] to probabilities float32 [n, 4]."""
    kernel: dict[str, Any] = {"kernel_quantizer": "ste_sign", "kernel_constraint": "weight_clip", "use_bias": False}
    binary = {"input_quantizer": "approx_sign", **kernel}
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((SAMPLES, 3, 1)),
            layers.Conv2D(32, (5, 3), (2, 1), use_bias=False),
            layers.BatchNormalization(),
            lq.layers.QuantConv2D(64, (5, 1), **binary),
            layers.MaxPooling2D((2, 1)),
            layers.BatchNormalization(scale=False),
            lq.layers.QuantConv2D(64, (3, 1), **binary),
            layers.MaxPooling2D((2, 1)),
            layers.BatchNormalization(scale=False),
            lq.layers.QuantConv2D(64, (3, 1), **binary),
            layers.BatchNormalization(),
            layers.GlobalAveragePooling2D(),
            layers.Dense(len(NAMES)),
            layers.Softmax(),
        ]
    )


def train(gestures: Gestures, epochs: int) -> Any:
    """The network after training on the gestures."""
    keras.utils.set_random_seed(1)
    network, batch = make_network(), 64
    steps = epochs * -(-len(gestures.labels) // batch)
    network.compile(
        optimizer=keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(0.005, steps)),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    network.fit(gestures.traces.astype(np.float32), gestures.labels, batch, epochs, verbose=0)
    return network


def convert(network: Any, gestures: Gestures) -> bytes:
    """The network as a `.tflite` file, which takes the sensor's levels and gives int8 scores."""
    samples = gestures.traces[:SHOWN].astype(np.float32)
    # One sample covers the whole range of the sensor. The int8 levels of the network's input therefore equal the levels
    # of the sensor.
    samples[0, :2, 0, 0] = -128, 127
    shown = [sample[None] for sample in samples]
    options = {"representative_dataset": shown, "inference_input_type": "int8", "inference_output_type": "int8"}
    return bytes(litebnn.convert_keras_model(network, **options))


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m examples.micro.gestures.train")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--output", type=Path, default=Path("gestures.tflite"), help="the file to write")
    options = parser.parse_args(arguments)
    training, test = made_gestures(TRAINED_ON, TRAINING), made_gestures(TESTED_ON, TEST)
    network = train(training, options.epochs)
    _, accuracy = network.evaluate(test.traces.astype(np.float32), test.labels, verbose=0)
    write_whole(options.output, convert(network, training))
    print(f"{options.output}: {accuracy:.1%} of {TESTED_ON} made gestures in float")
    return 0


if __name__ == "__main__":
    sys.exit(main())
