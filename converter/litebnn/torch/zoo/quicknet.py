"""QuickNet: Bannink et al., "Larq Compute Engine", MLSys 2021, https://arxiv.org/abs/2011.09398"""

from __future__ import annotations

import os
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from litebnn.torch.layers import BinaryConv2d
from litebnn.torch.signs import SteSign
from litebnn.torch.zoo.layers import BlurPool, DepthwiseConv2d, FloatConv2d, Top
from litebnn.torch.zoo.weights import load_given_weights

CLIP = 1.25  # beyond this magnitude, signs have no slope and weights are clipped


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-5, momentum=0.1)


def _stem_norm(channels: int, affine: bool = True) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01, affine=affine)


class _Stem(nn.Module):
    """QuickNet's first layers, from images [n, 3, height, width] to features [n, channels, height / 4, width / 4]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = FloatConv2d(3, channels // 4, 3, 2, "same")
        self.norm = _stem_norm(channels // 4)
        self.depthwise = DepthwiseConv2d(channels // 4, 3, 2)
        self.depthwise_norm = _stem_norm(channels // 4, affine=False)
        self.pointwise = FloatConv2d(channels // 4, channels, 1)
        self.pointwise_norm = _stem_norm(channels)
        nn.init.kaiming_normal_(self.conv.weight)
        nn.init.kaiming_normal_(self.pointwise.weight)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(self.conv(x)))
        x = self.depthwise_norm(self.depthwise(x))
        normal: Tensor = self.pointwise_norm(self.pointwise(x))
        return normal


class _Residual(nn.Module):
    """A binary convolution with padding of ones, ReLU and batch norm, added to its input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = BinaryConv2d(
            channels,
            channels,
            3,
            padding="same",
            bias=False,
            pad_values=1,
            input_quantizer=SteSign(CLIP),
            weight_quantizer=SteSign(CLIP),
        )
        self.norm = _norm(channels)
        nn.init.xavier_normal_(self.conv.weight)

    def forward(self, x: Tensor) -> Tensor:
        residual: Tensor = self.norm(F.relu(self.conv(x)))
        return x + residual


class _Transition(nn.Module):
    """An antialiased max pool, and a float convolution of 1×1 to more channels."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.pool = nn.MaxPool2d(2, stride=1)
        self.blur = BlurPool(before)
        self.conv = FloatConv2d(before, after, 1)
        self.norm = _norm(after)
        nn.init.xavier_normal_(self.conv.weight)

    def forward(self, x: Tensor) -> Tensor:
        normal: Tensor = self.norm(self.conv(self.blur(self.pool(F.relu(x)))))
        return normal


class QuickNet(nn.Module):
    """QuickNet, from images [n, 3, height, width] to logits [n, num_classes].

    Args:
        num_classes: the number of classes.
        include_top: False to give the last features instead.
        weights: a file of weights, of PyTorch or Keras (`load_weights`), "imagenet" for pretrained weights, which are
            fetched once, or None for random weights.
        blocks: the number of binary convolutions in each section.
        channels: the number of channels in each section.

    Raises:
        OSError: the file cannot be read or fetched.
        ValueError: the weights are of another network.

    Source: Bannink et al., "Larq Compute Engine", MLSys 2021, https://arxiv.org/abs/2011.09398

    Example:
        >>> QuickNet(num_classes=10)(torch.zeros(2, 3, 64, 64)).shape
        torch.Size([2, 10])
    """

    keras_classes: ClassVar[dict[type[nn.Module], str]] = {
        FloatConv2d: "quant_conv2d",
        BinaryConv2d: "quant_conv2d",
        DepthwiseConv2d: "quant_depthwise_conv2d",
        BlurPool: "depthwise_conv2d",
        nn.BatchNorm2d: "batch_normalization",
        nn.Linear: "quant_dense",
    }
    weight_clip: ClassVar[float] = CLIP

    def __init__(
        self,
        num_classes: int = 1000,
        *,
        include_top: bool = True,
        weights: str | os.PathLike[str] | None = None,
        blocks: tuple[int, ...] = (4, 4, 4, 4),
        channels: tuple[int, ...] = (64, 128, 256, 512),
    ) -> None:
        super().__init__()
        self.stem = _Stem(channels[0])
        sections: list[nn.Module] = []
        for before, after, count in zip((channels[0], *channels), channels, blocks, strict=False):
            sections += [_Transition(before, after)] if before != after else []
            sections += [_Residual(after) for _ in range(count)]
        self.sections = nn.Sequential(*sections)
        self.top = nn.Sequential(nn.ReLU(), Top(channels[-1], num_classes)) if include_top else nn.Identity()
        load_given_weights(self, weights, include_top)

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.top(self.sections(self.stem(x)))
        return outputs


class QuickNetSmall(QuickNet):
    """QuickNet with fewer channels in the first sections."""

    def __init__(
        self,
        num_classes: int = 1000,
        *,
        include_top: bool = True,
        weights: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(num_classes, include_top=include_top, weights=weights, channels=(32, 64, 256, 512))


class QuickNetLarge(QuickNet):
    """QuickNet with more binary convolutions in each section."""

    def __init__(
        self,
        num_classes: int = 1000,
        *,
        include_top: bool = True,
        weights: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(num_classes, include_top=include_top, weights=weights, blocks=(6, 8, 12, 6))
