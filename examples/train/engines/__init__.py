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
    """A network in training. Each process has a copy of it.

    Images are float32 [n, size, size, 3], labels int32 [n]. Unless a method says otherwise, each process passes its own
    part of a batch.

    Attributes:
        process: the number of this process, which counts from 0.
        processes: the number of processes that train together.
    """

    process: int
    processes: int

    def step(self, images: Array, labels: Array, rate: float, step: int) -> None:
        """Trains on one batch. `rate` is the factor of all learning rates, `step` the number of earlier steps."""

    def loss(self) -> float:
        """Returns the mean loss over all processes and over the steps since the last call. Each process has to call
        this method."""

    def accuracy(self, batches: Iterable[Batch]) -> float:
        """Returns the share of images, over all processes, that the network classifies correctly. Each process has
        to call this method.
        """

    def predict(self, images: Array) -> Array:
        """Returns the scores [n, classes] of the network in evaluation mode. Only this process computes them."""

    def state(self) -> State:
        """Returns everything that the next step depends on, by name. Each process has to call this method."""

    def load_state(self, state: State) -> None:
        """Continues from a state that the method `state` returned.

        Raises:
            ValueError: the state belongs to another network.
        """

    def save_weights(self, folder: Path) -> None:
        """Writes the network's weights in the framework's own file format."""

    def convert(self) -> bytes:
        """Returns the `.tflite` file with binary layers."""


def load_engine(options: Options, classes: int) -> Engine:
    """Makes the engine of the chosen framework, with its network.

    Raises:
        ImportError: the framework is not installed.
        ValueError: the network does not exist, or does not fit the file of weights.
    """
    module = importlib.import_module(f"{__name__}.{options.framework}")
    engine: Engine = module.make_engine(options, classes)
    return engine
