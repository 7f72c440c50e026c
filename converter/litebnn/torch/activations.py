"""ReActNet's activations, which learn a shift for each channel."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from litebnn.torch.signs import Quantizer, quantizer


def _shifted(x: Tensor, shift: Tensor) -> Tensor:
    """Adds one number for each channel to `x` [n, channels, ...]."""
    # The shift is written as a batch norm. The exporter keeps a batch norm channel-last, but would put transposes
    # around an addition.
    return F.batch_norm(x, torch.zeros_like(shift), torch.ones_like(shift), bias=shift, eps=0.0)


class RSign(nn.Module):
    """A sign with a learned threshold for each channel: +1 where x + shift >= 0, and else -1.

    The module maps [n, channels, ...] to the same shape and dtype. The next binary layer takes `input_quantizer=None`.

    Source: Liu et al., "ReActNet", ECCV 2020, https://arxiv.org/abs/2003.03488

    Args:
        channels: the number of channels.
        estimator: the sign with its gradient: a name of `SIGNS` or a function of a tensor.

    Raises:
        ValueError: there is no sign of that name.
        RuntimeError: the input has another number of channels.

    Example:
        >>> layer = nn.Sequential(RSign(32), BinaryConv2d(32, 32, 3, padding=1, input_quantizer=None), RPReLU(32))
        >>> layer(torch.randn(1, 32, 8, 8)).shape
        torch.Size([1, 32, 8, 8])
    """

    def __init__(self, channels: int, estimator: str | Quantizer = "approx_sign") -> None:
        super().__init__()
        self.estimator = quantizer(estimator)
        self.shift = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        signs: Tensor = self.estimator(_shifted(x, self.shift))
        return signs


class RPReLU(nn.Module):
    """A PReLU with learned shifts before and after it for each channel: prelu(x - shift) + offset.

    The module maps [n, channels, ...] to the same shape and dtype. Shifts and offsets start at zero, slopes at `slope`.

    Source: Liu et al., "ReActNet", ECCV 2020, https://arxiv.org/abs/2003.03488

    Args:
        channels: the number of channels.
        slope: every channel's initial slope below zero.

    Raises:
        RuntimeError: the input has another number of channels.

    Example:
        >>> RPReLU(1)(torch.tensor([[-4.0], [4.0]])).detach()
        tensor([[-1.],
                [ 4.]])
    """

    def __init__(self, channels: int, slope: float = 0.25) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(channels))
        self.offset = nn.Parameter(torch.zeros(channels))
        self.slope = nn.Parameter(torch.full((channels,), slope))

    def forward(self, x: Tensor) -> Tensor:
        return _shifted(F.prelu(_shifted(x, -self.shift), self.slope), self.offset)
