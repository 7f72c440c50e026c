"""Binary convolutions and dense layers: those of torch.nn, with quantizers for the input and the weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from litebnn.torch.signs import Quantizer, quantizer

Sizes = int | tuple[int, ...]


class BinaryLayer(nn.Module):
    """The base class of this module's layers, by which they can be found in a network.

    `input_quantizer` and `weight_quantizer` are functions of a tensor, or None to leave input or weights unchanged.
    `weight_scale` multiplies each output channel's weights by the mean of their latent magnitudes; gradients flow
    through that mean.
    """

    def __init__(
        self,
        *arguments: Any,
        input_quantizer: str | Quantizer | None = "ste_sign",
        weight_quantizer: str | Quantizer | None = "ste_sign",
        weight_scale: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.input_quantizer = None if input_quantizer is None else quantizer(input_quantizer)
        self.weight_quantizer = None if weight_quantizer is None else quantizer(weight_quantizer)
        self.weight_scale = weight_scale

    def quantized_weight(self) -> Tensor:
        """The weights with which the layer computes, in the shape and dtype of `weight`."""
        weight = self.weight if self.weight_quantizer is None else self.weight_quantizer(self.weight)
        if not self.weight_scale:
            return weight
        return weight * self.weight.abs().mean(dim=tuple(range(1, self.weight.dim())), keepdim=True)


class _BinaryConv(BinaryLayer):
    """A convolution along the last `rank` axes."""

    rank: ClassVar[int]
    convolution: ClassVar[Callable[..., Tensor]]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        pad_values: float = 0.0,
        input_quantizer: str | Quantizer | None = "ste_sign",
        weight_quantizer: str | Quantizer | None = "ste_sign",
        weight_scale: bool = False,
    ) -> None:
        # PyTorch has no "same" padding with strides. Therefore the layer pads by itself, and PyTorch's convolution runs
        # without padding.
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            0,
            dilation,
            groups,
            bias,
            input_quantizer=input_quantizer,
            weight_quantizer=weight_quantizer,
            weight_scale=weight_scale,
        )
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f'padding is "{padding}", expected "same", "valid" or numbers')
        if pad_values not in (-1, 0, 1):
            raise ValueError(f"pad_values is {pad_values}, expected 0, 1 or -1")
        self.padding = (padding,) * self.rank if isinstance(padding, int) else padding
        self.pad_values = float(pad_values)

    def _pads(self, lengths: tuple[int, ...]) -> list[tuple[int, int]]:
        """The amounts of padding before and after each axis, for an input of these lengths."""
        if self.padding == "valid":
            return [(0, 0)] * self.rank
        if not isinstance(self.padding, str):
            return [(amount, amount) for amount in self.padding]
        pads = []
        for length, size, stride, dilation in zip(lengths, self.kernel_size, self.stride, self.dilation, strict=True):
            total = max((-(-length // stride) - 1) * stride + dilation * (size - 1) + 1 - length, 0)
            pads.append((total // 2, total - total // 2))
        return pads

    def forward(self, x: Tensor) -> Tensor:
        signs = x if self.input_quantizer is None else self.input_quantizer(x)
        pads = self._pads(tuple(x.shape[-self.rank :]))
        padding: tuple[int, ...] = (0,) * self.rank
        if self.pad_values == 0 and all(before == behind for before, behind in pads):
            padding = tuple(before for before, _ in pads)
        else:
            # The function torch.nn.functional.pad expects the amounts of the last axis first.
            signs = F.pad(signs, [amount for pair in reversed(pads) for amount in pair], value=self.pad_values)
        weight = self.quantized_weight()
        return type(self).convolution(signs, weight, self.bias, self.stride, padding, self.dilation, self.groups)


class BinaryConv2d(_BinaryConv, nn.Conv2d):
    """A `torch.nn.Conv2d` of the signs of its input with the signs of its weights.

    The layer maps [n, in_channels, height, width] to [n, out_channels, out height, out width], where n is optional.
    Input, weights and output have the same dtype. The arguments are those of `torch.nn.Conv2d`, without `padding_mode`,
    `device` and `dtype`, and with:

    Args:
        padding: numbers as in PyTorch, "valid", or TensorFlow's "same". The value "same" gives ceil(height / stride)
            outputs, and an odd amount of padding has the extra value after the input.
        pad_values: the padding value: 0, 1 ("same-one", which is faster to run) or -1.
        input_quantizer: the quantizer of the input: a name of `SIGNS` or a function of a tensor. None is for an input
            that already is signs, or for a first layer, whose input stays float.
        weight_quantizer: the quantizer of the weights, [out_channels, in_channels / groups, height, width].
        weight_scale: True to multiply each output channel by the mean of its |weight|, as in Rastegari et al.,
            "XNOR-Net", ECCV 2016, https://arxiv.org/abs/1603.05279

    Raises:
        ValueError: an argument is out of range.
        RuntimeError: the input has another number of channels or axes.

    Source: Courbariaux et al., "Binarized Neural Networks", 2016, https://arxiv.org/abs/1602.02830

    Example:
        >>> layer = BinaryConv2d(32, 64, 3, stride=2, padding="same", pad_values=1, bias=False)
        >>> layer(torch.randn(1, 32, 9, 9)).shape
        torch.Size([1, 64, 5, 5])
    """

    rank = 2
    convolution = F.conv2d


class BinaryConv1d(_BinaryConv, nn.Conv1d):
    """A `torch.nn.Conv1d` of the signs of its input with the signs of its weights.

    The layer maps [n, in_channels, length] to [n, out_channels, out length]; everything else is as in `BinaryConv2d`.

    Example:
        >>> layer = BinaryConv1d(32, 64, 3, padding=1)
        >>> layer(torch.randn(1, 32, 20)).shape
        torch.Size([1, 64, 20])
    """

    rank = 1
    convolution = F.conv1d


class BinaryLinear(BinaryLayer, nn.Linear):
    """A `torch.nn.Linear` of the signs of its input with the signs of its weights.

    The layer maps [..., in_features] to [..., out_features], in the dtype of the input. The quantizers and the scale
    are as in `BinaryConv2d`; the weights are [out_features, in_features].

    Raises:
        ValueError: an argument is out of range.
        RuntimeError: the input has another number of features.

    Example:
        >>> layer = BinaryLinear(64, 10, weight_scale=True)
        >>> layer(torch.randn(1, 64)).shape
        torch.Size([1, 10])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        input_quantizer: str | Quantizer | None = "ste_sign",
        weight_quantizer: str | Quantizer | None = "ste_sign",
        weight_scale: bool = False,
    ) -> None:
        super().__init__(
            in_features,
            out_features,
            bias,
            input_quantizer=input_quantizer,
            weight_quantizer=weight_quantizer,
            weight_scale=weight_scale,
        )

    def forward(self, x: Tensor) -> Tensor:
        signs = x if self.input_quantizer is None else self.input_quantizer(x)
        return F.linear(signs, self.quantized_weight(), self.bias)
