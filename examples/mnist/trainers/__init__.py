"""Who trains the demo's network: a module for each, which imports its framework and has what `Trainer` lists."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, cast

import numpy.typing as npt

from examples.mnist.data import Digits

Predict = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
OnEpoch = Callable[[int, float], None]

TRAINERS = ("larq", "keras", "torch")


class Trainer(Protocol):
    """What such a module has. A network is the framework's own object, and images are float32 [n, 28, 28, 1]."""

    FRAMEWORK: str  # as the demo's table names it

    def train(self, digits: Digits, epochs: int, on_epoch: OnEpoch) -> Any:
        """A network trained on `digits`; `on_epoch` gets the number of epochs done and the training accuracy."""

    def predict(self, network: Any) -> Predict:
        """The function from images to scores float32 [n, 10], as the framework computes it."""

    def save(self, network: Any, folder: Path) -> Path:
        """Writes the framework's own file of the network into `folder`, and returns its path."""

    def convert_float(self, network: Any) -> bytes:
        """The `.tflite` file that the framework's own exporter writes."""

    def convert(self, network: Any) -> bytes:
        """The `.tflite` file with binary layers that litebnn makes of it."""


def load_trainer(name: str) -> Trainer:
    """The trainer of that name, of `TRAINERS`.

    Raises:
        ImportError: its framework is not installed.
    """
    return cast(Trainer, importlib.import_module(f"{__name__}.{name}"))
