"""Builds a random network in PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from litebnn.torch import BinaryConv2d, BinaryLinear
from tests.trainers.random_networks import CLASSES, EPSILON, INPUT_CHANNELS, Conv, Network


class Residual(nn.Module):
    """A residual block: the sum of a branch's output and its input."""

    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, x: Tensor) -> Tensor:
        return x + self.branch(x)


class Mean(nn.Module):
    """The mean of an image over height and width."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(dim=(2, 3))


def _norm(values: tuple[Any, ...], kind: type[Any]) -> nn.Module:
    norm = kind(len(values[0]), eps=EPSILON)
    for tensor, value in zip((norm.weight, norm.bias, norm.running_mean, norm.running_var), values, strict=True):
        tensor.data = torch.tensor(value)
    return norm


def _with_weight(layer: Any, weight: Any) -> Any:
    layer.weight.data = torch.tensor(weight)
    return layer


def _block(conv: Conv, weight: Any, norm: tuple[Any, ...]) -> nn.Module:
    layer = BinaryConv2d(
        conv.in_channels,
        conv.out_channels,
        conv.kernel,
        conv.stride,
        conv.padding,
        groups=conv.groups,
        bias=False,
        pad_values=conv.pad_values,
        input_quantizer=conv.input_sign,
        weight_quantizer="ste_sign" if conv.weight_scale else conv.weight_sign,
        weight_scale=conv.weight_scale,
    )
    pool = [nn.MaxPool2d(conv.pool)] if conv.pool > 1 else []
    block = nn.Sequential(_with_weight(layer, weight), *pool, _norm(norm, nn.BatchNorm2d))
    return Residual(block) if conv.residual else block


def torch_network(network: Network) -> nn.Module:
    """The network, in evaluation mode, from images [n, channels, height, width] to scores [n, classes]."""
    weights = network.weights
    stem = nn.Conv2d(INPUT_CHANNELS, len(weights["stem"]), 3, padding=1, bias=False)
    last = nn.Linear(network.hidden, CLASSES)
    last.bias.data = torch.tensor(weights["last_bias"])
    return nn.Sequential(
        _with_weight(stem, weights["stem"]),
        _norm(weights["stem_norm"], nn.BatchNorm2d),
        *(_block(*parts) for parts in zip(network.convs, weights["convs"], weights["norms"], strict=True)),
        nn.Flatten() if network.flatten else Mean(),
        _with_weight(
            BinaryLinear(network.features, network.hidden, False, input_quantizer=network.dense_sign), weights["dense"]
        ),
        _norm(weights["dense_norm"], nn.BatchNorm1d),
        _with_weight(last, weights["last"]),
    ).eval()
