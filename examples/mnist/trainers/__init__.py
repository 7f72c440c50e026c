"""Trainers of the demo's network: one module per framework, with the members of `Trainer`."""

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, cast

import numpy.typing as npt

from examples.mnist.data import Digits

Predict = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
OnEpoch = Callable[[int, float], None]

TRAINERS = ("larq", "keras", "torch")  # module names, which are also the names of the required packages


def first_installed() -> str:
    """The first of `TRAINERS` whose package this Python has; the first of all if this Python has none."""
    return next(filter(importlib.util.find_spec, TRAINERS), TRAINERS[0])


class Trainer(Protocol):
    """The members of a trainer's module. Networks are objects of the framework; images are float32 [n, 28, 28, 1]."""

    FRAMEWORK: str  # name in the demo's table

    def train(self, digits: Digits, epochs: int, on_epoch: OnEpoch) -> Any:
        """Trains a network on `digits` and returns it; `on_epoch` gets the number of epochs done and the training
        accuracy."""

    def predict(self, network: Any) -> Predict:
        """Returns the framework's own function from images to scores float32 [n, 10]."""

    def save(self, network: Any, folder: Path) -> Path:
        """Writes the network into `folder`, in the framework's own file format, and returns the path."""

    def convert_float(self, network: Any) -> bytes:
        """Returns the `.tflite` file that the framework's own exporter writes."""

    def convert(self, network: Any) -> bytes:
        """Returns the `.tflite` file with binary layers that litebnn writes."""


def load_trainer(name: str) -> Trainer:
    """Imports the trainer that has this name in `TRAINERS`.

    Raises:
        ImportError: the trainer's framework is not installed.
    """
    return cast(Trainer, importlib.import_module(f"{__name__}.{name}"))
