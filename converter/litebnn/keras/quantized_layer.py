"""Mixins of all layers with quantizers: they quantize inputs and weights, and pad with values other than zero."""

from __future__ import annotations

from typing import Any, ClassVar

import keras
from keras import ops

from litebnn.errors import warn
from litebnn.keras import activations, constraints, context, quantizers


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


_CONSTRAINTS = {"weight_clip": constraints.WeightClip}
_ACTIVATIONS = {"hard_tanh": activations.hard_tanh, "leaky_tanh": activations.leaky_tanh}
# Warnings skip the stack frames of these modules, which belong to constructors of layers. Thus a warning points at the
# user's code.
_MODULES = (__name__, "litebnn.keras.layers")


class QuantizedLayer(keras.layers.Layer):
    """A mixin that a class lists before a Keras layer among its base classes. It makes the layer quantize its inputs
    and its weights.

    Attributes:
        weight_quantizers: the name of the quantizer argument for each weight, by the weight's name.
    """

    weight_quantizers: ClassVar[dict[str, str]] = {"kernel": "kernel_quantizer"}

    def __init__(self, *args: Any, input_quantizer: Any = None, **kwargs: Any) -> None:
        found = {
            name: quantizers.get_kernel_quantizer(kwargs.pop(name, None)) for name in self.weight_quantizers.values()
        }
        super().__init__(*args, **{name: _named(name, value) for name, value in kwargs.items()})
        self.input_quantizer = quantizers.get(input_quantizer)
        for name, quantizer in found.items():
            setattr(self, name, quantizer)
            constraint = name.replace("_quantizer", "_constraint")
            is_binary = getattr(quantizer, "precision", None) == 1 and not isinstance(quantizer, quantizers.NoOp)
            if is_binary and getattr(self, constraint) is None:
                warn(
                    f'layer "{self.name}" has a binary {name} and no {constraint}: latent weights may drift to where '
                    f'they have no gradient; {constraint}="weight_clip" keeps them from it',
                    *_MODULES,
                )

    def add_weight(self, *args: Any, **kwargs: Any) -> Any:
        variable = super().add_weight(*args, **kwargs)
        quantizer = getattr(self, self.weight_quantizers.get(kwargs.get("name", ""), ""), None)
        if quantizer is None:
            return variable
        if isinstance(quantizer, quantizers.Quantizer):
            quantizer.build(tuple(variable.shape))
        return quantized(variable, quantizer)

    def call(self, inputs: Any) -> Any:
        if self.input_quantizer is not None:
            inputs = self.input_quantizer(inputs)
        with context.quantized_scope(True):
            return super().call(inputs)

    def get_config(self) -> dict[str, Any]:
        names = ("input_quantizer", *self.weight_quantizers.values())
        return {**super().get_config(), **{name: quantizers.serialize(getattr(self, name)) for name in names}}


def _named(argument: str, value: Any) -> Any:
    """Replaces names that only litebnn knows by their objects; other values are left for Keras to resolve."""
    if not isinstance(value, str):
        return value
    if argument.endswith("_constraint"):
        return _CONSTRAINTS[value]() if value in _CONSTRAINTS else value
    if argument == "activation":
        return quantizers.get(value) if value in quantizers.BY_NAME else _ACTIVATIONS.get(value, value)
    return value


class SamePadding(keras.layers.Layer):
    """A mixin that a class lists before a Keras convolution among its base classes. It pads with `pad_values` if
    padding="same".

    For values other than zero, the input is padded first, and the convolution runs with padding="valid". The attribute
    `padding` then shows "valid".

    Raises:
        ValueError: padding is "causal" and `pad_values` is not zero.
    """

    def __init__(self, *args: Any, padding: str = "valid", pad_values: float = 0.0, **kwargs: Any) -> None:
        self._pads = padding.lower() == "same" and pad_values != 0.0
        super().__init__(*args, padding="valid" if self._pads else padding, **kwargs)
        self.pad_values = float(pad_values)
        if self.padding == "causal" and self.pad_values != 0.0:
            raise ValueError(f'layer "{self.name}" has padding="causal", which pads with 0: pad_values is {pad_values}')

    def _amounts(self, shape: Any) -> list[tuple[Any, Any]]:
        """The amounts of padding before and after each spatial dimension, for an input of this shape."""
        first = 1 if self.data_format == "channels_last" else 2
        amounts: list[tuple[Any, Any]] = [(0, 0)] * len(shape)
        for axis, (kernel, stride, dilation) in enumerate(
            zip(self.kernel_size, self.strides, self.dilation_rate, strict=True), first
        ):
            size = shape[axis]
            if size is None:
                continue
            outputs = (size + stride - 1) // stride
            needed = (outputs - 1) * stride + (kernel - 1) * dilation + 1 - size
            total = max(needed, 0) if isinstance(size, int) else ops.maximum(needed, 0)
            amounts[axis] = total // 2, total - total // 2
        return amounts

    def _padded_shape(self, shape: Any) -> Any:
        if not self._pads:
            return shape
        amounts = self._amounts(shape)
        return tuple(None if size is None else size + sum(pads) for size, pads in zip(shape, amounts, strict=True))

    def build(self, input_shape: Any) -> None:
        super().build(self._padded_shape(input_shape))
        # If a model has no input shape, a layer may be called on another image size than the one with which it was
        # built. Therefore only the number of dimensions is checked.
        self.input_spec = keras.layers.InputSpec(ndim=self.rank + 2)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return super().compute_output_shape(self._padded_shape(input_shape))

    def call(self, inputs: Any) -> Any:
        if self._pads:
            inputs = ops.pad(inputs, self._amounts(ops.shape(inputs)), constant_values=self.pad_values)
        return super().call(inputs)

    def get_config(self) -> dict[str, Any]:
        padding = "same" if self._pads else self.padding
        return {**super().get_config(), "padding": padding, "pad_values": self.pad_values}
