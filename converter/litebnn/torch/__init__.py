"""Layers, signs and an optimizer for training binarized networks in PyTorch; `litebnn.convert_torch_model` converts
them.

::

    from torch import nn
    from litebnn.torch import BinaryConv2d, BinaryLinear, clip_weights

    network = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.BatchNorm2d(32),
        BinaryConv2d(32, 64, 3, padding=1, pad_values=1, bias=False), nn.MaxPool2d(2), nn.BatchNorm2d(64),
        nn.Flatten(), BinaryLinear(64 * 13 * 13, 10, bias=False), nn.BatchNorm1d(10),
    )
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError('litebnn.torch needs PyTorch: pip install "litebnn[torch]"') from error

from litebnn.torch.activations import RPReLU, RSign
from litebnn.torch.bop import Bop
from litebnn.torch.layers import BinaryConv1d, BinaryConv2d, BinaryLayer, BinaryLinear
from litebnn.torch.signs import (
    SIGNS,
    ApproxSign,
    EstimatedSign,
    MagnitudeAwareSign,
    ResteSign,
    SteSign,
    SwishSign,
    sign,
)
from litebnn.torch.weights import binary_weights, clip_weights, float_parameters

__all__ = [
    "SIGNS",
    "ApproxSign",
    "BinaryConv1d",
    "BinaryConv2d",
    "BinaryLayer",
    "BinaryLinear",
    "Bop",
    "EstimatedSign",
    "MagnitudeAwareSign",
    "RPReLU",
    "RSign",
    "ResteSign",
    "SteSign",
    "SwishSign",
    "binary_weights",
    "clip_weights",
    "float_parameters",
    "sign",
]
