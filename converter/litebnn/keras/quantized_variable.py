"""A weight that reads as its quantized value while the network computes with it."""

from __future__ import annotations

from typing import Any

import keras

from litebnn.keras import context


class QuantizedVariable(keras.Variable):
    """A variable whose value in a `context.quantized_scope(True)` is what its quantizer makes of it.

    Attributes:
        quantizer: from latent to quantized values.
        precision: the quantizer's, or None.
    """

    quantizer: Any
    precision: int | None

    @property
    def value(self) -> Any:
        latent = keras.Variable.value.fget(self)
        if not context.should_quantize():
            return latent
        with context.quantized_scope(False):
            return self.quantizer(latent)

    def assign(self, value: Any) -> Any:
        with context.quantized_scope(False):
            return super().assign(value)


def quantized(variable: Any, quantizer: Any) -> Any:
    """The variable itself, with a quantizer from now on.

    Keras makes and registers the variables of a layer by a class that no layer can choose, so that this one is set
    behind it.
    """
    variable.__class__ = QuantizedVariable
    variable.quantizer = quantizer
    variable.precision = getattr(quantizer, "precision", None)
    return variable
