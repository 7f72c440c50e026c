"""Finds and clips the weights of binary layers in a network."""

from __future__ import annotations

import torch
from torch import nn

from litebnn.torch.layers import BinaryLayer


def binary_weights(module: nn.Module) -> list[nn.Parameter]:
    """The weights of the layers in `module` that have a weight quantizer, each weight once; for `Bop` and for
    clipping.

    Example:
        >>> model = nn.Sequential(BinaryLinear(64, 32), nn.Linear(32, 10))
        >>> [weight.shape for weight in binary_weights(model)]
        [torch.Size([32, 64])]
    """
    layers = [layer for layer in module.modules() if isinstance(layer, BinaryLayer)]
    return list(dict.fromkeys(layer.weight for layer in layers if layer.weight_quantizer is not None))


def float_parameters(module: nn.Module) -> list[nn.Parameter]:
    """All parameters of `module` that `binary_weights` does not return: biases, batch norms, float layers.

    Example:
        >>> model = nn.Sequential(BinaryLinear(64, 32), nn.Linear(32, 10))
        >>> [parameter.shape for parameter in float_parameters(model)]
        [torch.Size([32]), torch.Size([10, 32]), torch.Size([10])]
    """
    binary = {id(weight) for weight in binary_weights(module)}
    return [parameter for parameter in module.parameters() if id(parameter) not in binary]


@torch.no_grad()
def clip_weights(module: nn.Module, clip_value: float = 1.0) -> None:
    """Clips the binary layers' weights to [-`clip_value`, `clip_value`], in place. Call it after each step of the
    optimizer.

    Without clipping, a weight could not return from values at which a straight-through estimator has no slope.

    Source: Courbariaux et al., "BinaryConnect", NeurIPS 2015, https://arxiv.org/abs/1511.00363

    Raises:
        ValueError: `clip_value` is not positive.

    Example:
        >>> model = BinaryLinear(64, 10)
        >>> optimizer = torch.optim.Adam(model.parameters())
        >>> handle = optimizer.register_step_post_hook(lambda *_: clip_weights(model))
    """
    if not clip_value > 0:
        raise ValueError(f"clip_value is {clip_value}, expected a positive number")
    for weight in binary_weights(module):
        weight.clamp_(-clip_value, clip_value)
