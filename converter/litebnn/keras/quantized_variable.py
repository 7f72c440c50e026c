"""A weight that is read as its quantized value while the network computes with it."""

from __future__ import annotations

from typing import Any

import keras

from litebnn.keras import context


class QuantizedVariable(keras.Variable):
    """A variable whose value inside `context.quantized_scope(True)` is quantized.

    Attributes:
        quantizer: a function from latent to quantized values.
        precision: the quantizer's precision in bits, or None.
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
    """Attaches a quantizer to a variable and returns the same variable.

    Keras creates the variables of a layer with a class that the layer cannot choose. Therefore the class of the
    variable is replaced afterwards.
    """
    variable.__class__ = QuantizedVariable
    variable.quantizer = quantizer
    variable.precision = getattr(quantizer, "precision", None)
    return variable
