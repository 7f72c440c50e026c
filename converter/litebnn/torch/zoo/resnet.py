"""Networks like ResNet-18 with a shortcut around each binary convolution: Bi-Real Net and ReActNet."""

from __future__ import annotations

import os
from typing import ClassVar

from torch import Tensor, nn

from litebnn.torch.activations import RPReLU, RSign
from litebnn.torch.layers import BinaryConv2d
from litebnn.torch.signs import ApproxSign
from litebnn.torch.zoo.layers import FloatConv2d, SameMaxPool2d, Top
from litebnn.torch.zoo.weights import load_given_weights

CHANNELS = (64, 128, 256, 512)
BLOCKS = 4  # binary convolutions in each section


class _Block(nn.Module):
    """A binary convolution and a batch norm, whose output is added to the input. The convolution's input goes
    through signs, and the sum through an activation.
    """

    def __init__(
        self,
        before: int,
        after: int,
        sign: nn.Module,
        padding: str | int,
        norm: dict[str, float],
        activation: nn.Module,
    ) -> None:
        super().__init__()
        stride = 1 if before == after else 2
        self.sign = sign
        self.conv = BinaryConv2d(
            before,
            after,
            3,
            stride,
            padding,
            bias=False,
            input_quantizer=None,
            weight_quantizer="magnitude_aware_sign",
        )
        self.norm = nn.BatchNorm2d(after, **norm)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1:
            pool = nn.AvgPool2d(2, stride, ceil_mode=True)
            conv = FloatConv2d(before, after, 1)
            nn.init.xavier_normal_(conv.weight)
            self.shortcut = nn.Sequential(pool, conv, nn.BatchNorm2d(after, **norm))
        self.activation = activation
        nn.init.xavier_normal_(self.conv.weight)

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.activation(self.norm(self.conv(self.sign(x))) + self.shortcut(x))
        return outputs


class _ResNet18(nn.Module):
    """The common architecture of the networks: a stem, 16 blocks, and the layers that classify."""

    def __init__(
        self,
        stem: nn.Sequential,
        blocks: list[nn.Module],
        num_classes: int,
        include_top: bool,
        weights: str | os.PathLike[str] | None,
    ) -> None:
        super().__init__()
        self.stem = stem
        self.blocks = nn.Sequential(*blocks)
        self.top = Top(CHANNELS[-1], num_classes) if include_top else nn.Identity()
        nn.init.xavier_normal_(self.stem[0].weight)
        load_given_weights(self, weights, include_top)

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.top(self.blocks(self.stem(x)))
        return outputs


def _widths() -> list[tuple[int, int]]:
    """The numbers of channels before and after each block."""
    after = [channels for channels in CHANNELS for _ in range(BLOCKS)]
    return list(zip([CHANNELS[0], *after], after, strict=False))


class BiRealNet(_ResNet18):
    """Bi-Real Net of 18 layers, from images [n, 3, height, width] to logits [n, num_classes].

    Args:
        num_classes: the number of classes.
        include_top: False to give the last features instead.
        weights: a file of weights, of PyTorch or Keras (`load_weights`), "imagenet" for pretrained weights, which are
            fetched once, or None for random weights.

    Raises:
        OSError: the file cannot be read or fetched.
        ValueError: the weights are of another network.

    Source: Liu et al., "Bi-Real Net", ECCV 2018, https://arxiv.org/abs/1808.00278

    Example:
        >>> BiRealNet(num_classes=10)(torch.zeros(2, 3, 64, 64)).shape
        torch.Size([2, 10])
    """

    keras_classes: ClassVar[dict[type[nn.Module], str]] = {
        FloatConv2d: "conv2d",
        BinaryConv2d: "quant_conv2d",
        nn.BatchNorm2d: "batch_normalization",
        nn.Linear: "dense",
    }

    def __init__(
        self,
        num_classes: int = 1000,
        *,
        include_top: bool = True,
        weights: str | os.PathLike[str] | None = None,
    ) -> None:
        norm = {"eps": 1e-3, "momentum": 0.2}
        stem = nn.Sequential(
            FloatConv2d(3, CHANNELS[0], 7, 2, "same"), nn.BatchNorm2d(CHANNELS[0], **norm), SameMaxPool2d()
        )
        blocks: list[nn.Module] = [
            _Block(before, after, ApproxSign(), "same", norm, nn.Identity()) for before, after in _widths()
        ]
        super().__init__(stem, blocks, num_classes, include_top, weights)


class ReActNet18(_ResNet18):
    """ReActNet in the shape of ResNet-18, from images [n, 3, height, width] to logits [n, num_classes].

    Args:
        num_classes: the number of classes.
        include_top: False to give the last features instead.
        weights: a file with the network's `state_dict`, as `torch.save` writes it; None for random weights.

    Raises:
        OSError: the file cannot be read or fetched.
        ValueError: the weights are of another network.

    Source: Liu et al., "ReActNet", ECCV 2020, https://arxiv.org/abs/2003.03488

    Example:
        >>> ReActNet18(num_classes=10)(torch.zeros(2, 3, 64, 64)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        num_classes: int = 1000,
        *,
        include_top: bool = True,
        weights: str | os.PathLike[str] | None = None,
    ) -> None:
        stem = nn.Sequential(
            FloatConv2d(3, CHANNELS[0], 7, 2, 3), nn.BatchNorm2d(CHANNELS[0]), nn.MaxPool2d(3, 2, padding=1)
        )
        blocks: list[nn.Module] = [
            _Block(before, after, RSign(before), 1, {}, RPReLU(after)) for before, after in _widths()
        ]
        super().__init__(stem, blocks, num_classes, include_top, weights)
