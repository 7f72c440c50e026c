"""Signs for training. Forward they give +1 where x >= 0, else -1. Backward they estimate the gradient, because the true
gradient is zero.

Every class is a module without parameters that keeps the shape and dtype of its input. Layers take a sign as an object,
or by its name in `SIGNS`, which stands for the defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Quantizer = Callable[[Tensor], Tensor]


def sign(x: Tensor) -> Tensor:
    """The sign of `x`, in the same shape and dtype and without a gradient: +1 where x >= 0 and else -1.

    Example:
        >>> sign(torch.tensor([-0.5, 0.0, 2.0]))
        tensor([-1.,  1.,  1.])
    """
    # The exporter keeps a sign channel-last if it is computed from a comparison by arithmetic. Around torch.where with
    # two constants, the exporter would put transposes.
    return (x >= 0).to(x.dtype) * 2 - 1


class _EstimatedSign(torch.autograd.Function):
    """A sign whose gradient is defined by a function of the sign's input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, slope: Quantizer) -> Tensor:
        ctx.save_for_backward(x)
        ctx.slope = slope
        return sign(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return gradients[0] * ctx.slope(x), None


class EstimatedSign(nn.Module):
    """A sign whose gradient a subclass defines."""

    def slope(self, x: Tensor) -> Tensor:
        """The estimate of the sign's derivative at `x`, in the shape and dtype of `x`."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        signs: Tensor = _EstimatedSign.apply(x, self.slope)
        return signs


class SteSign(EstimatedSign):
    """The straight-through estimator: the slope is 1 where |x| <= `clip_value`, else 0. If `clip_value` is None, the
    slope is 1 everywhere.

    Source: Hubara et al., "Binarized Neural Networks", NeurIPS 2016, https://arxiv.org/abs/1602.02830

    Raises:
        ValueError: `clip_value` is not positive.

    Example:
        >>> x = torch.tensor([-2.0, 0.5], requires_grad=True)
        >>> SteSign()(x).sum().backward()
        >>> x.grad
        tensor([0., 1.])
    """

    def __init__(self, clip_value: float | None = 1.0) -> None:
        super().__init__()
        if clip_value is not None:
            _check_positive("clip_value", clip_value)
        self.clip_value = clip_value

    def slope(self, x: Tensor) -> Tensor:
        return torch.ones_like(x) if self.clip_value is None else (x.abs() <= self.clip_value).to(x.dtype)

    def extra_repr(self) -> str:
        return f"clip_value={self.clip_value}"


class ApproxSign(EstimatedSign):
    """A sign with the slope of a piecewise polynomial: 2 - 2|x| where |x| <= 1, else 0.

    Source: Liu et al., "Bi-Real Net", ECCV 2018, https://arxiv.org/abs/1808.00278

    Example:
        >>> x = torch.tensor([-2.0, 0.25], requires_grad=True)
        >>> ApproxSign()(x).sum().backward()
        >>> x.grad
        tensor([0.0000, 1.5000])
    """

    def slope(self, x: Tensor) -> Tensor:
        return 2 * (1 - x.abs()).clamp(min=0)


class SwishSign(EstimatedSign):
    """A sign with the slope of SignSwish: b (2 - b x tanh(b x / 2)) / (1 + cosh(b x)) with b = `beta`.

    Source: Darabi et al., "Regularized Binary Network Training" (BNN+), 2018, https://arxiv.org/abs/1812.11800

    Raises:
        ValueError: `beta` is not positive.

    Example:
        >>> x = torch.tensor([0.0], requires_grad=True)
        >>> SwishSign(beta=5.0)(x).sum().backward()
        >>> x.grad
        tensor([5.])
    """

    def __init__(self, beta: float = 5.0) -> None:
        super().__init__()
        _check_positive("beta", beta)
        self.beta = beta

    def slope(self, x: Tensor) -> Tensor:
        scaled = self.beta * x
        # Far from zero, the hyperbolic cosine overflows to infinity. The quotient is then zero, which is right.
        return self.beta * (2 - scaled * torch.tanh(scaled / 2)) / (1 + torch.cosh(scaled))

    def extra_repr(self) -> str:
        return f"beta={self.beta}"


class ResteSign(EstimatedSign):
    """The rectified straight-through estimator: the slope of sign(x) |x|^(1/`power`), a secant of it around zero.

    The slope is `linear`^(1/power) / `linear` where |x| <= `linear`, |x|^(1/power - 1) / power from there to
    `clip_value`, and else 0. A power of 1 is the straight-through estimator; a larger power is nearer to the sign and
    less stable. The paper raises the power from 1 to 3 in equal steps, epoch by epoch.

    Source: Wu et al., "Estimator Meets Equilibrium Perspective: A Rectified Straight Through Estimator for Binary
    Neural Networks Training", ICCV 2023, https://arxiv.org/abs/2308.06689

    Raises:
        ValueError: `power` is below 1, or one of the other arguments is not positive.

    Example:
        >>> model = nn.Sequential(nn.Linear(8, 8), ResteSign())
        >>> for epoch in range(10):
        ...     for module in model.modules():
        ...         if isinstance(module, ResteSign):
        ...             module.power = 1 + 2 * epoch / 9
        >>> model[1]
        ResteSign(power=3.0, clip_value=1.5, linear=0.1)
    """

    def __init__(self, power: float = 1.0, clip_value: float = 1.5, linear: float = 0.1) -> None:
        super().__init__()
        if not power >= 1:
            raise ValueError(f"power is {power}, expected at least 1")
        _check_positive("clip_value", clip_value)
        _check_positive("linear", linear)
        self.power, self.clip_value, self.linear = power, clip_value, linear

    def slope(self, x: Tensor) -> Tensor:
        size = x.abs()
        curve = size.clamp(min=self.linear) ** (1 / self.power - 1) / self.power
        slope = torch.where(size <= self.linear, self.linear ** (1 / self.power - 1), curve)
        return slope * (size <= self.clip_value)

    def extra_repr(self) -> str:
        return f"power={self.power}, clip_value={self.clip_value}, linear={self.linear}"


class MagnitudeAwareSign(SteSign):
    """The quantizer of weights [outputs, ...] to alpha sign(w), where alpha is the mean of |w| in each output
    channel.

    Forward, the values are ±alpha, which one multiplier can represent. Backward, alpha is a constant: the slope is
    alpha where |w| <= `clip_value`, else 0.

    Source: Liu et al., "Bi-Real Net", ECCV 2018, section 3.3, https://arxiv.org/abs/1808.00278

    Raises:
        ValueError: `clip_value` is not positive, or the tensor has no axis besides the output channels.

    Example:
        >>> MagnitudeAwareSign()(torch.tensor([[1.0, -3.0], [0.5, 0.5]]))
        tensor([[ 2.0000, -2.0000],
                [ 0.5000,  0.5000]])
    """

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() < 2:
            raise ValueError(f"magnitude_aware_sign is for weights [outputs, ...], got shape {list(x.shape)}")
        alpha = x.detach().abs().mean(dim=tuple(range(1, x.dim())), keepdim=True)
        return super().forward(x) * alpha


SIGNS: dict[str, type[EstimatedSign]] = {
    "ste_sign": SteSign,
    "approx_sign": ApproxSign,
    "swish_sign": SwishSign,
    "magnitude_aware_sign": MagnitudeAwareSign,
    "reste_sign": ResteSign,
}


def quantizer(name: str | Quantizer) -> Quantizer:
    """The sign with this name and its defaults; a function is returned unchanged.

    Raises:
        ValueError: there is no sign with this name.
        TypeError: the argument is neither a name nor a function.

    Example:
        >>> quantizer("swish_sign")
        SwishSign(beta=5.0)
    """
    if isinstance(name, str):
        if name not in SIGNS:
            raise ValueError(f'there is no sign "{name}": expected one of {", ".join(SIGNS)}')
        return SIGNS[name]()
    if not callable(name):
        raise TypeError(f"expected the name of a sign or a function, got {type(name).__name__}")
    return name


def _check_positive(name: str, value: float) -> None:
    if not value > 0:
        raise ValueError(f"{name} is {value}, expected a positive number")
