"""Callbacks for the training of binary networks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import keras


class HyperparameterScheduler(keras.callbacks.Callback):
    """Sets a hyperparameter of an optimizer by a schedule, such as the threshold or gamma of `Bop`.

    Example::

        HyperparameterScheduler(lambda epoch: 0.001 * 0.1 ** (epoch // 30), "gamma", bop)

    Args:
        schedule: a function of the epoch (or step), counted from 0, and optionally of the current value; returns the
            new value.
        hyperparameter: the name of the optimizer's attribute: a variable, or its learning rate.
        optimizer: the optimizer; by default the optimizer of the model.
        update_freq: "epoch" or "step".
        verbose: 1 prints each value.
        log_name: the name in the logs; by default the name of the hyperparameter.

    Raises:
        ValueError: `update_freq` has another value, or the optimizer lacks the attribute or keeps it fixed.
    """

    def __init__(
        self,
        schedule: Callable[..., float],
        hyperparameter: str,
        optimizer: Any = None,
        update_freq: str = "epoch",
        verbose: int = 0,
        log_name: str | None = None,
    ) -> None:
        super().__init__()
        if update_freq not in ("epoch", "step"):
            raise ValueError(f'update_freq is "{update_freq}", expected "epoch" or "step"')
        parameters = inspect.signature(schedule).parameters.values()
        required = [
            p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        self.takes_value = len(required) > 1
        self.schedule = schedule
        self.hyperparameter = hyperparameter
        self.optimizer = optimizer
        self.update_freq = update_freq
        self.verbose = verbose
        self.log_name = log_name or hyperparameter

    def set_model(self, model: Any) -> None:
        super().set_model(model)
        if self.optimizer is None:
            self.optimizer = model.optimizer
        if self.hyperparameter != "learning_rate" and not isinstance(
            getattr(self.optimizer, self.hyperparameter, None), keras.Variable
        ):
            raise ValueError(
                f'the optimizer {self.optimizer.name} has no "{self.hyperparameter}" that can be set while it trains'
            )

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        del logs
        if self.update_freq == "epoch":
            self._update("epoch", epoch)

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        del batch, logs
        if self.update_freq == "step":
            if keras.config.backend() == "jax":
                self.model.jax_state_sync()  # JAX keeps the optimizer's state elsewhere between steps.
            self._update("step", int(self.optimizer.iterations))

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        del epoch
        if logs is not None:
            logs[self.log_name] = self._value()

    def _value(self) -> float:
        return float(keras.ops.convert_to_numpy(getattr(self.optimizer, self.hyperparameter)))

    def _update(self, unit: str, time: int) -> None:
        value = self.schedule(time, self._value()) if self.takes_value else self.schedule(time)
        if self.hyperparameter == "learning_rate":
            self.optimizer.learning_rate = value
        else:
            getattr(self.optimizer, self.hyperparameter).assign(value)
        if self.verbose > 0:
            keras.utils.io_utils.print_msg(f"{unit} {time}: {self.log_name} is now {self._value():g}")
