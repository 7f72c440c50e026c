"""Quantizers: they replace a layer's inputs or weights by few different values, and define a gradient for training.

A quantizer is a Keras layer. The layers of `litebnn.keras.layers` take a quantizer as an object, or by the name that
Larq gives it: `kernel_quantizer="ste_sign"` is `kernel_quantizer=SteSign()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import keras
from keras import ops

from litebnn.keras import context, math
from litebnn.keras.metrics import FlipRatio


def ste_sign(x: Any, clip_value: float | None = 1.0) -> Any:
    """The sign of x. Its gradient is 1 where |x| <= clip_value, else 0. If clip_value is None, the gradient is 1
    everywhere."""
    return with_gradient(math.sign, _clipped(clip_value), x)


def approx_sign(x: Any) -> Any:
    """The sign of x. Its gradient is 2 - 2 |x| where |x| <= 1, else 0."""
    return with_gradient(math.sign, lambda x, dy: ops.where(ops.abs(x) <= 1, (1 - ops.abs(x)) * 2 * dy, 0.0), x)


def swish_sign(x: Any, beta: float = 5.0) -> Any:
    """The sign of x. Its gradient is beta (2 - beta x tanh(beta x / 2)) / (1 + cosh(beta x))."""

    def gradient(x: Any, dy: Any) -> Any:
        scaled = beta * x
        return dy * beta * (2 - scaled * ops.tanh(scaled * 0.5)) / (1 + ops.cosh(scaled))

    return with_gradient(math.sign, gradient, x)


def ste_heaviside(x: Any, clip_value: float | None = 1.0) -> Any:
    """Returns 1 where x > 0, else 0. Its gradient is that of `ste_sign`."""
    return with_gradient(math.heaviside, _clipped(clip_value), x)


def ste_tern(
    x: Any, threshold_value: float = 0.05, ternary_weight_networks: bool = False, clip_value: float | None = 1.0
) -> Any:
    """Returns 1 where x > threshold, -1 where x < -threshold, else 0. Its gradient is that of `ste_sign`.

    The threshold is `threshold_value`. If `ternary_weight_networks` is true, it is 0.7 times the mean of |x|.
    """

    def ternary(x: Any) -> Any:
        threshold = 0.7 * ops.mean(ops.abs(x)) if ternary_weight_networks else threshold_value
        return ops.sign(ops.sign(x + threshold) + ops.sign(x - threshold))

    return with_gradient(ternary, _clipped(clip_value), x)


def _clipped(clip_value: float | None) -> Callable[[Any, Any], Any]:
    if clip_value is None:
        return lambda _, dy: dy
    return lambda x, dy: ops.where(ops.abs(x) <= clip_value, dy, 0.0)


def with_gradient(function: Callable[[Any], Any], gradient: Callable[[Any, Any], Any], x: Any) -> Any:
    """Evaluates function(x) with a custom backward pass, gradient(x, dy)."""

    def forward(x: Any) -> tuple[Any, Callable[..., Any]]:
        # On most backends, Keras calls this lambda with the gradient of the output as its only argument. On the backend
        # torch, Keras instead passes the inputs, and the gradient as the keyword argument `upstream`.
        return function(x), lambda *arguments, upstream=None: gradient(
            x, arguments[0] if upstream is None else upstream
        )

    return ops.custom_gradient(forward)(ops.convert_to_tensor(x))


class Quantizer(keras.layers.Layer):
    """The base class of quantizers. To write a quantizer, inherit from this class, set `precision`, and override
    `quantized_values`.

    Attributes:
        precision: the number of bits of a quantized value; `models.summary` and `Bop.is_binary_variable` read it.

    Args:
        metrics: names of metrics to record in training: "flip_ratio" or none. If it is None, a quantizer of weights
            records those of `context.metrics_scope`.

    Raises:
        ValueError: a metric is unknown, or the backend is JAX, with which layers cannot record metrics in training.
    """

    precision: int | None = None

    def __init__(self, *, metrics: Iterable[str] | None = None, **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)
        self.measured: tuple[str, ...] | None = None
        if metrics is not None:
            self.measure(metrics)

    def measure(self, metrics: Iterable[str]) -> None:
        """Sets the metrics to record. The quantizer must not have been called yet."""
        self.measured = tuple(metrics)
        context.check_metrics(self.measured)
        if self.measured and keras.config.backend() == "jax":
            raise ValueError('JAX keeps no state of "flip_ratio" in a layer: set KERAS_BACKEND=tensorflow or torch')

    def build(self, input_shape: Any) -> None:
        if self.measured:
            self.flip_ratio = FlipRatio(name=f"flip_ratio/{self.name}")
            self.flip_ratio.build(input_shape)
        self.built = True

    def quantized_values(self, inputs: Any) -> Any:
        """The quantized values of a tensor, in its shape and type."""
        return inputs

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        outputs = self.quantized_values(inputs)
        if self.measured and training:
            self.flip_ratio.update_state(outputs)
        return outputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape


@keras.saving.register_keras_serializable(package="litebnn")
class NoOp(Quantizer):
    """A quantizer that changes nothing. It only marks a weight as one of `precision` bits, for `Bop` and for
    metrics.
    """

    def __init__(self, precision: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.precision = precision

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "precision": self.precision}


class _ClippedQuantizer(Quantizer):
    """A quantizer whose gradient is 0 where |x| > clip_value. If clip_value is None, no gradient is set to 0."""

    def __init__(self, clip_value: float | None = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.clip_value = clip_value

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "clip_value": self.clip_value}


@keras.saving.register_keras_serializable(package="litebnn")
class SteSign(_ClippedQuantizer):
    """The sign with the straight-through estimator: its gradient is 1 where |x| <= clip_value.

    Source: Hubara et al., "Binarized Neural Networks", https://arxiv.org/abs/1602.02830
    """

    precision = 1

    def quantized_values(self, inputs: Any) -> Any:
        return ste_sign(inputs, self.clip_value)


@keras.saving.register_keras_serializable(package="litebnn")
class ApproxSign(Quantizer):
    """The sign with the gradient of a piecewise quadratic function: 2 - 2 |x| where |x| <= 1.

    Source: Liu et al., "Bi-Real Net", https://arxiv.org/abs/1808.00278
    """

    precision = 1

    def quantized_values(self, inputs: Any) -> Any:
        return approx_sign(inputs)


@keras.saving.register_keras_serializable(package="litebnn")
class SwishSign(Quantizer):
    """The sign with the gradient of the sign-swish function. The larger beta is, the nearer this function is to the
    sign.

    Source: Darabi et al., "BNN+: Improved Binary Network Training", https://arxiv.org/abs/1812.11800
    """

    precision = 1

    def __init__(self, beta: float = 5.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.beta = beta

    def quantized_values(self, inputs: Any) -> Any:
        return swish_sign(inputs, self.beta)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "beta": self.beta}


@keras.saving.register_keras_serializable(package="litebnn")
class MagnitudeAwareSign(_ClippedQuantizer):
    """The sign times the mean of |x| in each output channel (the last axis). Its gradient is that of `SteSign` times
    this mean.

    Source: Liu et al., "Bi-Real Net", section 3.3, https://arxiv.org/abs/1808.00278
    """

    precision = 1

    def quantized_values(self, inputs: Any) -> Any:
        scale = ops.mean(ops.abs(inputs), axis=tuple(range(len(inputs.shape) - 1)))
        return ops.stop_gradient(scale) * ste_sign(inputs, self.clip_value)


@keras.saving.register_keras_serializable(package="litebnn")
class SteHeaviside(_ClippedQuantizer):
    """The step function: 1 where x > 0, else 0, with the gradient of `SteSign`."""

    precision = 1

    def quantized_values(self, inputs: Any) -> Any:
        return ste_heaviside(inputs, self.clip_value)


@keras.saving.register_keras_serializable(package="litebnn")
class SteTern(_ClippedQuantizer):
    """The ternary quantizer: -1, 0 or 1, with 0 where |x| is below a threshold, and the gradient of `SteSign`.

    Args:
        threshold_value: the threshold.
        ternary_weight_networks: True to make the threshold 0.7 times the mean of |x| instead.

    Source: Li et al., "Ternary Weight Networks", https://arxiv.org/abs/1605.04711
    """

    precision = 2

    def __init__(
        self,
        threshold_value: float = 0.05,
        ternary_weight_networks: bool = False,
        clip_value: float | None = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(clip_value, **kwargs)
        self.threshold_value = threshold_value
        self.ternary_weight_networks = ternary_weight_networks

    def quantized_values(self, inputs: Any) -> Any:
        return ste_tern(inputs, self.threshold_value, self.ternary_weight_networks, self.clip_value)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "threshold_value": self.threshold_value,
            "ternary_weight_networks": self.ternary_weight_networks,
        }


@keras.saving.register_keras_serializable(package="litebnn")
class DoReFa(Quantizer):
    """Quantization to 2**k_bit levels: in [0, 1] for activations, which are clipped, or in [-1, 1] for weights.

    Weights go through tanh and are divided by the tensor's largest value. The gradient is that of the clipping, or of
    the scaled tanh; rounding passes the gradient unchanged.

    Args:
        k_bit: the number of bits of a value.
        mode: "activations" or "weights".

    Raises:
        ValueError: the mode is unknown.

    Source: Zhou et al., "DoReFa-Net", section 2.3, https://arxiv.org/abs/1606.06160
    """

    def __init__(self, k_bit: int = 2, mode: str = "activations", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if mode not in ("activations", "weights"):
            raise ValueError(f'DoReFa has no mode "{mode}", expected "activations" or "weights"')
        self.precision = k_bit
        self.mode = mode

    def quantized_values(self, inputs: Any) -> Any:
        if self.mode == "activations":
            inside = with_gradient(
                lambda x: ops.clip(x, 0.0, 1.0), lambda x, dy: ops.where((x >= 0) & (x <= 1), dy, 0.0), inputs
            )
            return self._rounded(inside)
        limited = ops.tanh(inputs)
        largest = ops.stop_gradient(ops.max(ops.abs(limited)))
        return 2.0 * self._rounded(ops.divide_no_nan(limited, 2.0 * largest) + 0.5) - 1.0

    def _rounded(self, x: Any) -> Any:
        steps = 2 ** (self.precision or 1) - 1
        return with_gradient(lambda x: ops.round(x * steps) / steps, _clipped(None), x)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "k_bit": self.precision, "mode": self.mode}


# Earlier names of Larq's quantizers, which still work.
DoReFaQuantizer = DoReFa
NoOpQuantizer = NoOp

BY_NAME: dict[str, type[Quantizer]] = {
    "ste_sign": SteSign,
    "approx_sign": ApproxSign,
    "swish_sign": SwishSign,
    "magnitude_aware_sign": MagnitudeAwareSign,
    "ste_heaviside": SteHeaviside,
    "ste_tern": SteTern,
    "dorefa_quantizer": DoReFa,
}


def serialize(quantizer: Any) -> Any:
    """The configuration of a quantizer, as `get` takes it."""
    return keras.saving.serialize_keras_object(quantizer)


def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """The quantizer of a configuration from `serialize`."""
    return keras.saving.deserialize_keras_object(config, custom_objects=custom_objects)


def get(identifier: Any) -> Any:
    """The quantizer for a name, a class name or a configuration. Functions and quantizers are returned unchanged.

    Raises:
        ValueError: the identifier is no known name, configuration, function or quantizer.
    """
    if identifier is None:
        return None
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, str):
        named = BY_NAME.get(identifier) or {kind.__name__: kind for kind in BY_NAME.values()}.get(identifier)
        named = named or keras.saving.get_registered_object(identifier)
        if named is not None:
            return named() if isinstance(named, type) else named
    if callable(identifier):
        return identifier
    raise ValueError(f"{identifier!r} is no quantizer: expected a function, a Quantizer or one of {', '.join(BY_NAME)}")


def get_kernel_quantizer(identifier: Any) -> Any:
    """The quantizer of a layer's weights, found as the function `get` finds it. If the layer is made inside
    `context.metrics_scope`, the quantizer records the metrics of this scope, unless it has metrics of its own.
    """
    quantizer = get(identifier)
    if isinstance(quantizer, Quantizer) and quantizer.measured is None:
        quantizer.measure(sorted(context.get_training_metrics()))
    return quantizer
