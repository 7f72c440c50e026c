"""The optimizer Bop, which flips binary weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from litebnn.torch.signs import sign


class Bop(torch.optim.Optimizer):
    """The binary optimizer: a weight of ±1 flips if the running mean of its gradients is large enough.

    The mean m becomes (1 - gamma) m + gamma g, where g is the gradient. A weight flips if it has the sign of m and |m|
    > threshold. There are no latent weights: the first step sets all weights to ±1. Float parameters need an optimizer
    of their own.

    Source: Helwegen et al., "Latent Weights Do Not Exist: Rethinking Binarized Neural Network Optimization", NeurIPS
    2019, https://arxiv.org/abs/1906.02107

    Args:
        params: the weights of binary layers (from `binary_weights`), or groups of them with their own options.
        threshold: the least mean gradient that flips a weight.
        gamma: the rate at which the mean follows the gradient, in (0, 1].

    Raises:
        ValueError: an option is out of range, or there are no weights.

    Example:
        >>> model = nn.Sequential(BinaryLinear(64, 32, bias=False), nn.BatchNorm1d(32), nn.Linear(32, 10))
        >>> optimizers = [Bop(binary_weights(model)), torch.optim.Adam(float_parameters(model))]
        >>> model(torch.randn(8, 64)).square().sum().backward()
        >>> for optimizer in optimizers:
        ...     optimizer.step()
        ...     optimizer.zero_grad()
        >>> model[0].weight.detach().unique()
        tensor([-1.,  1.])
    """

    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]], threshold: float = 1e-8, gamma: float = 1e-4
    ) -> None:
        if not threshold >= 0:
            raise ValueError(f"threshold is {threshold}, expected at least 0")
        if not 0 < gamma <= 1:
            raise ValueError(f"gamma is {gamma}, expected more than 0 and at most 1")
        super().__init__(params, {"threshold": threshold, "gamma": gamma})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Flips weights by their gradients; a weight without a gradient is unchanged.

        Args:
            closure: a function that computes the loss again, as for PyTorch's optimizers.

        Returns:
            The result of `closure`, or None.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if not state:
                    state["mean"] = torch.zeros_like(weight)
                mean = state["mean"].lerp_(weight.grad, group["gamma"])
                signs = sign(weight)
                weight.copy_(torch.where(mean * signs > group["threshold"], -signs, signs))
        return loss
