"""A small network in PyTorch."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn

from litebnn.torch import BinaryConv2d

WIDTHS = (32, 64, 128)


class _Residual(nn.Module):
    """A residual layer: the sum of a binary convolution and its input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = BinaryConv2d(channels, channels, 3, padding="same", pad_values=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.norm(self.conv(x))


class _Mean(nn.Module):
    """The mean of an image over height and width."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(dim=(2, 3))


def small(classes: int, size: int) -> nn.Module:
    """A network from images [n, 3, size, size] to scores [n, classes], in three residual blocks of 32 to 128
    channels."""
    del size
    stem = [nn.Conv2d(3, WIDTHS[0], 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(WIDTHS[0])]
    widenings = [
        nn.Sequential(
            BinaryConv2d(before, after, 3, stride=2, padding="same", pad_values=1, bias=False), nn.BatchNorm2d(after)
        )
        for before, after in pairwise(WIDTHS)
    ]
    blocks = [_Residual(width) for width in WIDTHS]
    body = [blocks[0], widenings[0], blocks[1], widenings[1], blocks[2]]
    return nn.Sequential(*stem, *body, nn.ReLU(), _Mean(), nn.Linear(WIDTHS[-1], classes))
