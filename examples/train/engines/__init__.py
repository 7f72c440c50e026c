"""Engines: the parts of a training that differ between frameworks."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt

from examples.train.checkpoint import State
from examples.train.images import Batch
from examples.train.options import Options

Array = npt.NDArray[Any]


class Engine(Protocol):
    """A network in training, of which each process has a copy.

    Images are float32 [n, size, size, 3], labels int32 [n]: those of this process, if not said otherwise.

    Attributes:
        process: this process's number, from 0 on.
        processes: the number of processes that train together.
    """

    process: int
    processes: int

    def step(self, images: Array, labels: Array, rate: float, step: int) -> None:
        """Trains on one batch; `rate` is the factor of the learning rates, `step` the number of steps before."""

    def loss(self) -> float:
        """The mean loss of the steps since the last call, in all processes, each of which has to call this."""

    def accuracy(self, batches: Iterable[Batch]) -> float:
        """The share of images with their class, in all processes, each of which has to call this."""

    def predict(self, images: Array) -> Array:
        """Scores [n, classes] of the network in evaluation mode, in this process alone."""

    def state(self) -> State:
        """All that the next step depends on, by name; all processes have to call this."""

    def load_state(self, state: State) -> None:
        """Continues from what `state` gave.

        Raises:
            ValueError: it is of another network.
        """

    def save_weights(self, folder: Path) -> None:
        """Writes the network's weights in the framework's own format."""

    def convert(self) -> bytes:
        """The `.tflite` file with binary layers."""


def load_engine(options: Options, classes: int) -> Engine:
    """The engine of a framework with its network.

    Raises:
        ImportError: the framework is not installed.
        ValueError: there is no such network, or its weights are others.
    """
    module = importlib.import_module(f"{__name__}.{options.framework}")
    engine: Engine = module.make_engine(options, classes)
    return engine
