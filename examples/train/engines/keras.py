"""Training with Keras 3, on one device, or with the backend JAX on many devices by Keras's distribution API."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "tensorflow")  # read when Keras is imported
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from keras import ops

import litebnn
from examples.train.checkpoint import State
from examples.train.engines import Array
from examples.train.images import CHANNELS, Batch
from examples.train.networks import builder, weights_file
from examples.train.options import Options
from litebnn.keras import zoo
from litebnn.keras.optimizers import Bop, CaseOptimizer
from litebnn.keras.zoo.weights import load_weights
from litebnn.zoo.networks import NETWORKS

WEIGHTS = "network.weights.h5"
_LEAST = 1e-7  # the least probability of which a logarithm is taken


def make_engine(options: Options, classes: int) -> KerasEngine:
    is_one_of_many = "KERAS_DISTRIBUTION_NUM_PROCESSES" in os.environ
    if is_one_of_many and keras.config.backend() != "jax":
        raise ValueError(f"Keras trains in many processes with KERAS_BACKEND=jax, this is {keras.config.backend()}")
    if is_one_of_many and keras.distribution.distribution() is None:
        keras.distribution.initialize()
    if keras.config.backend() == "jax" and len(keras.distribution.list_devices()) > 1:
        keras.distribution.set_distribution(keras.distribution.DataParallel(auto_shard_dataset=False))
    if keras.config.backend() == "tensorflow":
        import tensorflow as tf

        tf.config.experimental.enable_op_determinism()
    return KerasEngine(options, classes)


class KerasEngine:
    """The engine for Keras, with the members of `Engine`. All networks, including the teacher, give probabilities."""

    def __init__(self, options: Options, classes: int) -> None:
        self.options, self.classes = options, classes
        distribution = keras.distribution.distribution()
        self.processes = 1 if distribution is None else distribution.num_processes
        self.process = 0 if distribution is None else distribution.data_shard_id
        keras.utils.set_random_seed(options.seed)
        policy = {"float32": "float32"}.get(options.precision, f"mixed_{options.precision}")
        keras.config.set_dtype_policy(policy)
        self.network = _network(options, classes)
        if options.weights is not None:
            load_weights(self.network, weights_file(options))
        self.model = Trained(self.network, None if options.teacher is None else _teacher(options.teacher), options)
        self.optimizer = _optimizer(options)
        self.model.compile(self.optimizer, weighted_metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")])
        self.model.optimizer.build(self.network.trainable_variables)
        self.losses: list[float] = []

    def step(self, images: Array, labels: Array, rate: float, step: int) -> None:
        self._set_rates(rate)
        self.losses.append(float(self.model.train_on_batch(images, labels, return_dict=True)["loss"]))

    def _set_rates(self, rate: float) -> None:
        self.optimizer.learning_rate = self.options.learning_rate * rate
        for bop in getattr(self.optimizer, "optimizers", []):
            if isinstance(bop, Bop):
                bop.gamma.assign(self.options.bop_gamma * rate)

    def loss(self) -> float:
        losses, self.losses = self.losses, []
        return float(np.mean(losses))

    def accuracy(self, batches: Iterable[Batch]) -> float:
        right, count = 0.0, 0
        for images, labels, weights, real in batches:
            share = self.model.test_on_batch(images, labels, weights, return_dict=True)["accuracy"]
            right, count = right + float(share) * real, count + real
        return right / count

    def predict(self, images: Array) -> Array:
        scores: Array = np.asarray(self._trained_network.predict_on_batch(images))
        return scores

    def state(self) -> State:
        return {name: np.asarray(ops.convert_to_numpy(value)) for name, value in self._variables()}

    def load_state(self, state: State) -> None:
        variables = dict(self._variables())
        found, expected = ({name: tuple(v.shape) for name, v in each.items()} for each in (state, variables))
        if found != expected:
            name = next(iter(sorted({*found.items()} ^ {*expected.items()})))[0]
            raise ValueError(f"the checkpoint is of another network: {name} is {found.get(name, 'missing')} there")
        for name, variable in variables.items():
            variable.assign(state[name])

    def _variables(self) -> list[tuple[str, Any]]:
        parts = {"network": self.network.variables, "optimizer": self.model.optimizer.variables}
        return [(f"{part}/{index}", variable) for part, all in parts.items() for index, variable in enumerate(all)]

    @cached_property
    def _trained_network(self) -> Any:
        """The network in float32, with the trained weights gathered in this process."""
        values = [np.asarray(ops.convert_to_numpy(weight)) for weight in self.network.weights]
        keras.distribution.set_distribution(None)
        keras.config.set_dtype_policy("float32")
        network = _network(self.options, self.classes)
        network.set_weights(values)
        return network

    def save_weights(self, folder: Path) -> None:
        part = folder / f"part.{WEIGHTS}"
        self._trained_network.save_weights(part)
        part.replace(folder / WEIGHTS)

    def convert(self) -> bytes:
        return bytes(litebnn.convert_keras_model(self._trained_network))


class Trained(keras.Model):
    """A pair of networks: the network in training, and the teacher network from which it learns."""

    def __init__(self, network: Any, teacher: Any, options: Options) -> None:
        super().__init__()
        self.network, self.teacher, self.options = network, teacher, options

    def call(self, images: Any, training: bool = False) -> Any:
        return self.network(images, training=training)

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        loss = ops.mean(keras.losses.sparse_categorical_crossentropy(y, y_pred))
        if self.teacher is None or not training:
            return loss
        heat, share = self.options.temperature, self.options.teacher_share
        taught, learned = (ops.log_softmax(_logits(each) / heat) for each in (self.teacher(x, training=False), y_pred))
        distance = ops.mean(ops.sum(ops.exp(taught) * (taught - learned), axis=-1))
        return (1 - share) * loss + share * heat**2 * distance


def _logits(probabilities: Any) -> Any:
    return ops.log(ops.clip(ops.cast(probabilities, "float32"), _LEAST, 1.0))


def _network(options: Options, classes: int) -> Any:
    networks = {
        row.command: lambda classes, size, name=name: getattr(zoo, name)(
            input_shape=(size, size, CHANNELS), weights=None, num_classes=classes
        )
        for name, row in NETWORKS.items()
    }
    return builder(options.network, "keras", networks)(classes, options.size)


def _optimizer(options: Options) -> Any:
    adam = keras.optimizers.Adam(options.learning_rate)
    if options.optimizer == "adam":
        return adam
    bop = Bop(options.bop_threshold, options.bop_gamma)
    return CaseOptimizer((Bop.is_binary_variable, bop), default_optimizer=adam)


def _teacher(path: Path) -> Any:
    try:
        teacher = keras.models.load_model(path, compile=False)
    except (ValueError, OSError) as error:
        raise ValueError(f"--teacher {path} cannot be loaded by Keras: {' '.join(str(error).split())[:200]}") from None
    teacher.trainable = False
    return teacher
