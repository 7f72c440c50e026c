"""Optimizers for binary weights, and an optimizer that assigns each variable to one of several others."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

Schedule = keras.optimizers.schedules.LearningRateSchedule


@keras.saving.register_keras_serializable(package="litebnn")
class Bop(keras.optimizers.Optimizer):
    """An optimizer without latent weights. It flips a binary weight if the moving average of its gradients is large.

    The average of a weight w is m := m + gamma (gradient - m), and w becomes -w where w m > threshold. The optimizer is
    meant for the weights of layers with `kernel_quantizer=NoOp(precision=1)`. A `CaseOptimizer` can assign these
    weights to it.

    Args:
        threshold: the least average that flips a weight: a number or a schedule.
        gamma: the rate at which the average follows the gradients, similar to a learning rate: a number or a schedule.
        name: the optimizer's name.

    Source: Helwegen et al., "Latent Weights Do Not Exist", https://arxiv.org/abs/1906.02107
    """

    def __init__(self, threshold: Any = 1e-8, gamma: Any = 1e-4, name: str = "Bop", **kwargs: Any) -> None:
        super().__init__(learning_rate=kwargs.pop("learning_rate", 0.0), name=name, **kwargs)
        self.threshold = self._hyperparameter(threshold, "threshold")
        self.gamma = self._hyperparameter(gamma, "gamma")

    def _hyperparameter(self, value: Any, name: str) -> Any:
        """Returns a schedule unchanged, and a number as a variable that callbacks can set in a compiled step."""
        if isinstance(value, dict):
            value = keras.optimizers.schedules.deserialize(value)
        if isinstance(value, Schedule):
            return value
        return self.add_variable((), keras.initializers.Constant(float(value)), name=name)

    def build(self, variables: list[Any]) -> None:
        if self.built:
            return
        super().build(variables)
        self.averages = self.add_optimizer_variables(variables, "gradient_average")

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        del learning_rate
        threshold, gamma = (
            ops.cast(value(self.iterations) if isinstance(value, Schedule) else value, variable.dtype)
            for value in (self.threshold, self.gamma)
        )
        average = self.averages[self._get_variable_index(variable)]
        moved = average + gamma * (ops.cast(gradient, variable.dtype) - average)
        signs = ops.where(variable >= 0, ops.ones_like(moved), -ops.ones_like(moved))
        self.assign(average, moved)
        self.assign(variable, ops.where(variable * moved > threshold, -signs, signs))

    def get_config(self) -> dict[str, Any]:
        config: dict[str, Any] = super().get_config()
        for name in ("threshold", "gamma"):
            value = getattr(self, name)
            is_schedule = isinstance(value, Schedule)
            config[name] = keras.optimizers.schedules.serialize(value) if is_schedule else float(value.numpy())
        return config

    @staticmethod
    def is_binary_variable(variable: Any) -> bool:
        """True if a variable is a weight that a quantizer with `precision=1` quantizes. `CaseOptimizer` accepts this
        function as a predicate.
        """
        return getattr(variable, "precision", 32) == 1


@keras.saving.register_keras_serializable(package="litebnn")
class CaseOptimizer(keras.optimizers.Optimizer):
    """Trains each variable with the optimizer whose predicate is true for the variable.

    Example::

        lq.optimizers.CaseOptimizer(
            (lq.optimizers.Bop.is_binary_variable, lq.optimizers.Bop()),
            default_optimizer=keras.optimizers.Adam(0.01),
        )

    Args:
        predicate_optimizer_pairs: pairs of a predicate of variables and the optimizer for variables for which it is
            true.
        default_optimizer: the optimizer for all other variables, which are not trained without it. Callbacks see its
            learning rate.
        name: the optimizer's name.

    Raises:
        TypeError: a predicate is not callable, or an optimizer is not an optimizer.
        ValueError: two predicates are true for one variable, or an optimizer has no variables; raised when training
            starts.
    """

    def __init__(
        self,
        *predicate_optimizer_pairs: tuple[Callable[[Any], bool], Any],
        default_optimizer: Any = None,
        name: str = "optimizer_case",
    ) -> None:
        super().__init__(learning_rate=0.0, name=name)
        for index, (predicate, optimizer) in enumerate(predicate_optimizer_pairs):
            if not callable(predicate):
                raise TypeError(f"predicate {index} is a {type(predicate).__name__}, expected a function of a variable")
            _check_optimizer(optimizer, f"optimizer {index}")
        if default_optimizer is not None:
            _check_optimizer(default_optimizer, "default_optimizer")
        self.predicates = [predicate for predicate, _ in predicate_optimizer_pairs]
        self.default = default_optimizer
        self.optimizers = [optimizer for _, optimizer in predicate_optimizer_pairs]
        if default_optimizer is not None:
            self.optimizers.append(default_optimizer)
        # For each variable, in the model's order, the index of its optimizer. The predicates that choose optimizers are
        # evaluated when training starts.
        self.claims: list[int | None] | None = None

    def build(self, variables: list[Any]) -> None:
        if self.built:
            return
        super().build(variables)
        if self.claims is None:
            self.claims = [self._claim(variable) for variable in variables]
        for index, optimizer in enumerate(self.optimizers):
            claimed = [variable for variable, claim in zip(variables, self.claims, strict=True) if claim == index]
            if not claimed:
                raise ValueError(f"the optimizer {optimizer.name} claims no variable")
            optimizer.build(claimed)

    def _claim(self, variable: Any) -> int | None:
        claiming = [index for index, predicate in enumerate(self.predicates) if predicate(variable)]
        if len(claiming) > 1:
            names = " and ".join(self.optimizers[index].name for index in claiming)
            raise ValueError(f"the variable {variable.path} is claimed by {names}")
        if claiming:
            return claiming[0]
        if self.default is not None:
            return len(self.predicates)
        warnings.warn(f"no optimizer claims the variable {variable.path}: it is not trained", stacklevel=2)
        return None

    @property
    def variables(self) -> list[Any]:
        return [*super().variables, *(variable for optimizer in self.optimizers for variable in optimizer.variables)]

    @property
    def learning_rate(self) -> Any:
        return self._learning_rate if self.default is None else self.default.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        if self.default is None:
            raise ValueError(
                "a CaseOptimizer without default_optimizer has no learning rate: set that of its optimizers"
            )
        self.default.learning_rate = value

    def apply(self, grads: list[Any], trainable_variables: list[Any] | None = None) -> None:
        variables = list(self._trainable_variables if trainable_variables is None else trainable_variables)
        if not self.built:
            self.build(variables)
        claims = [(self.claims or [])[self._get_variable_index(variable)] for variable in variables]
        for index, optimizer in enumerate(self.optimizers):
            pairs = [(g, v) for g, v, claim in zip(grads, variables, claims, strict=True) if claim == index]
            if pairs:
                optimizer.apply(*map(list, zip(*pairs, strict=True)))
        self._iterations.assign_add(1)

    def get_config(self) -> dict[str, Any]:
        serialize = keras.saving.serialize_keras_object
        return {
            "name": self.name,
            "optimizers": [serialize(optimizer) for optimizer in self.optimizers[: len(self.predicates)]],
            "default_optimizer": serialize(self.default),
            "claims": self.claims,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> CaseOptimizer:
        """Restores the optimizer after loading. Predicates cannot be saved, so variables are matched by their order."""

        def restored(part: Any) -> Any:
            return keras.saving.deserialize_keras_object(part, custom_objects=custom_objects)

        pairs = [(lambda _: False, restored(optimizer)) for optimizer in config["optimizers"]]
        optimizer = cls(*pairs, default_optimizer=restored(config["default_optimizer"]), name=config["name"])
        optimizer.claims = config["claims"]
        return optimizer


def _check_optimizer(value: Any, name: str) -> None:
    if not isinstance(value, keras.optimizers.Optimizer):
        raise TypeError(f"{name} is a {type(value).__name__}, expected a keras.optimizers.Optimizer")
