"""Networks that concatenate the outputs of all binary convolutions: BinaryDenseNet and MeliusNet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from keras import layers, ops

from litebnn.keras.zoo.blocks import batch_norm, clipped_conv, dense_top, large_image_stem

_GROWTH = 64  # channels of each binary convolution
_CLIP_VALUE = 1.3


@dataclass(frozen=True)
class BinaryDenseNet:
    """BinaryDenseNet: blocks of binary convolutions, each of which adds channels. Float layers between blocks remove
    some channels.

    Source: Bethge et al., "Back to Simplicity", https://arxiv.org/abs/1906.08637
    """

    convolutions: tuple[int, ...]  # number of binary convolutions in each block
    reductions: tuple[float, ...]  # factor by which the number of channels decreases after each block but the last
    # The dilation in each block. No pool precedes a dilated block.
    dilations: tuple[int, ...] = (1, 1, 1, 1)

    def features(self, images: Any) -> Any:
        x = large_image_stem(images, 64)
        reductions = (None, *self.reductions)
        for convolutions, reduction, dilation in zip(self.convolutions, reductions, self.dilations, strict=True):
            if reduction is not None:
                x = _transition(x, round(x.shape[-1] // reduction / 32) * 32, pools=dilation == 1)
            for _ in range(convolutions):
                x = layers.concatenate([x, clipped_conv(batch_norm(x), _GROWTH, _CLIP_VALUE, dilation_rate=dilation)])
        return layers.ReLU()(batch_norm(x))

    def top(self, features: Any, num_classes: int) -> Any:
        return dense_top(features, num_classes, "he_normal")


def _transition(x: Any, filters: int, pools: bool) -> Any:
    x = batch_norm(x)
    if pools:
        x = layers.MaxPooling2D(2, strides=2)(x)
    return layers.Conv2D(filters, 1, kernel_initializer="he_normal", use_bias=False)(layers.ReLU()(x))


@dataclass(frozen=True)
class MeliusNet:
    """MeliusNet: pairs of binary convolutions. The first of a pair adds channels, the second improves these
    channels.

    Source: Bethge et al., "MeliusNet", https://arxiv.org/abs/2001.05936
    """

    pairs: tuple[int, ...]  # number of pairs of binary convolutions in each section of the network
    transitions: tuple[int, ...]  # number of channels after each section of the network but the last

    def features(self, images: Any) -> Any:
        x = _grouped_stem(images)
        for pairs, filters in zip(self.pairs, (None, *self.transitions), strict=True):
            if filters is not None:
                pooled = layers.MaxPooling2D(2, strides=2, padding="same")(batch_norm(x))
                x = _float_conv(layers.ReLU()(pooled), filters, 1)
            for _ in range(pairs):
                x = ops.concatenate([x, clipped_conv(batch_norm(x), _GROWTH, _CLIP_VALUE)], axis=-1)
                x = _improved(x)
        return layers.ReLU()(batch_norm(x))

    def top(self, features: Any, num_classes: int) -> Any:
        return dense_top(features, num_classes, "glorot_normal")


def _improved(x: Any) -> Any:
    """Adds the output of a binary convolution of all channels to the channels that were concatenated last."""
    added = clipped_conv(batch_norm(x), _GROWTH, _CLIP_VALUE)
    return x + ops.pad(added, [[0, 0], [0, 0], [0, 0], [x.shape[-1] - _GROWTH, 0]])


def _grouped_stem(images: Any) -> Any:
    """Three float 3×3 convolutions, the last two in groups of channels, which make images four times smaller."""
    x = layers.ReLU()(batch_norm(_float_conv(images, 32, 3, strides=2)))
    for filters, groups in ((32, 4), (64, 8)):
        parts = [_float_conv(part, filters // groups, 3) for part in ops.split(x, groups, axis=-1)]
        x = layers.ReLU()(batch_norm(ops.concatenate(parts, axis=-1)))
    return layers.MaxPooling2D(2, strides=2, padding="same")(x)


def _float_conv(x: Any, filters: int, size: int, strides: int = 1) -> Any:
    return layers.Conv2D(
        filters, size, strides=strides, padding="same", use_bias=False, kernel_initializer="glorot_normal"
    )(x)
