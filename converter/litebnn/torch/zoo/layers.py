"""Layers that the networks share: float layers that pad as TensorFlow does, and the layers that classify."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from litebnn.torch.layers import BinaryConv2d, Sizes


class FloatConv2d(BinaryConv2d):
    """A `torch.nn.Conv2d` of float values, with the paddings of `BinaryConv2d`: "same" is TensorFlow's.

    Example:
        >>> FloatConv2d(3, 8, 7, stride=2, padding="same", bias=False)(torch.zeros(1, 3, 9, 10)).shape
        torch.Size([1, 8, 5, 5])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        groups: int = 1,
        bias: bool = False,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            groups=groups,
            bias=bias,
            input_quantizer=None,
            weight_quantizer=None,
        )


class DepthwiseConv2d(FloatConv2d):
    """A float convolution of each channel by itself, with TensorFlow's "same" padding."""

    def __init__(self, channels: int, kernel_size: int, stride: int) -> None:
        super().__init__(channels, channels, kernel_size, stride, "same", groups=channels)


class BlurPool(DepthwiseConv2d):
    """Selects every second pixel of an image after blurring it with the binomial filter of 3×3 pixels, which is not
    trained.

    Source: Zhang, "Making Convolutional Networks Shift-Invariant Again", ICML 2019, https://arxiv.org/abs/1904.11486
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels, 3, 2)
        line = torch.tensor([0.25, 0.5, 0.25])
        with torch.no_grad():
            self.weight.copy_(torch.outer(line, line))
        self.weight.requires_grad_(False)


class SameMaxPool2d(nn.Module):
    """A max pool of 3×3 pixels with stride 2, and with TensorFlow's "same" padding."""

    size: ClassVar[int] = 3
    stride: ClassVar[int] = 2

    def forward(self, x: Tensor) -> Tensor:
        # The padding before an axis is passed explicitly; `ceil_mode` adds the necessary padding after the axis.
        needed = [(-(-length // self.stride) - 1) * self.stride + self.size - length for length in x.shape[2:]]
        padding = tuple(max(total, 0) // 2 for total in needed)
        return F.max_pool2d(x, self.size, self.stride, padding, ceil_mode=True)


class Top(nn.Sequential):
    """The layers that classify: the mean over height and width, and a dense layer from [n, channels, height, width] to
    logits [n, classes]."""

    def __init__(self, channels: int, num_classes: int) -> None:
        super().__init__(nn.Linear(channels, num_classes))
        nn.init.xavier_normal_(self[0].weight)
        nn.init.zeros_(self[0].bias)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = super().forward(x.mean(dim=(2, 3)))
        return logits
