"""Metrics of a binary network during its training."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="litebnn")
class FlipRatio(keras.metrics.Metric):
    """The share of a tensor's values that changed since the previous update, averaged over updates.

    Example::

        metric = lq.metrics.FlipRatio()
        metric.update_state([1, 1])
        metric.update_state([2, 2])  # all changed
        metric.update_state([1, 2])  # one of two
        float(metric.result())  # 0.75

    Args:
        values_dtype: the type in which the values are kept.
        name: the metric's name.
        dtype: the type of the mean.
    """

    def __init__(self, values_dtype: str = "int8", name: str = "flip_ratio", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.values_dtype = keras.backend.standardize_dtype(values_dtype)
        self.built = False

    def build(self, input_shape: Any) -> None:
        """Creates the variables for values of this shape. If this method is not called, the first update creates
        them."""
        self.previous_values = self.add_variable(
            tuple(input_shape), "zeros", dtype=self.values_dtype, name="previous_values"
        )
        self.total = self.add_variable((), "zeros", name="total")
        self.count = self.add_variable((), "zeros", name="count")
        self.built = True

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        del sample_weight
        values = ops.cast(values, self.values_dtype)
        if not self.built:
            self.build(values.shape)
        changed = ops.mean(ops.cast(ops.not_equal(self.previous_values, values), self.dtype))
        # The first update has no previous values to compare with.
        self.total.assign_add(changed * ops.minimum(self.count, 1.0))
        self.count.assign_add(1.0)
        self.previous_values.assign(values)

    def result(self) -> Any:
        return self.total / ops.maximum(self.count - 1.0, 1.0) if self.built else 0.0

    def reset_state(self) -> None:
        if self.built:
            self.total.assign(0.0)
            self.count.assign(0.0)

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype, "values_dtype": self.values_dtype}
