"""Pairs of small networks for the rules of docs/rules-for-models.md: one network keeps a rule, the other breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.costs.chain import Chain
from litebnn.contract import BITS_PER_WORD, Activation
from litebnn.graph import packed_words
from litebnn.report.guidelines import padding


@dataclass(frozen=True)
class Side:
    """A network that keeps or breaks a rule for fast models."""

    model: bytes
    # The number by which the network's time is divided: millions of multiply-adds or, if `Pair.per_value` is true, the
    # number of values.
    amount: float
    # The network as an option --layer of kernels_bench; "" if it is not a single LceBconv2d.
    layer: str = ""


@dataclass(frozen=True)
class Pair:
    """The two networks that show the price of a rule: one keeps the rule, the other breaks it."""

    rule: str
    # The description of the two networks, for the table of rules.
    example: str
    kept: Side
    broken: Side
    # Returns how strongly the network `broken` breaks the rule (`Finding.degree`), for tiles of `tile` channels.
    degree: Callable[[int], float] = lambda tile: 1.0
    # True if breaking the rule costs time for each value that is written to memory and read again. False if it makes
    # each multiply-add slower.
    per_value: bool = False


def layer(
    size: int, channels: int, outputs: int, taps: int, dilation: int = 1, groups: int = 1, zeros: bool = False
) -> Side:
    """A network of a single LceBconv2d, from packed signs to floats."""
    chain = Chain(1, size, size, packed_words(channels), type="INT32")
    chain.bconv(channels, outputs, taps, zeros=zeros, dilation=dilation, groups=groups, activation=Activation.RELU)
    macs = size * size * outputs * taps * taps * (channels // groups)
    numbers = size, channels, outputs, taps, 1, dilation, groups, int(zeros)
    return Side(chain.bytes(), macs / 1e6, ",".join(map(str, numbers)))


def _signs(size: int, channels: int) -> Chain:
    return Chain(1, size, size, packed_words(channels), type="INT32")


def pairs() -> Iterator[Pair]:
    """Yields the pair of networks of each rule, in the order of docs/rules-for-models.md."""
    yield Pair(
        "input channels",
        "3×3, 28×28: 64 channels, or 40",
        layer(28, 64, 128, 3),
        layer(28, 40, 128, 3),
        lambda tile: padding(40, BITS_PER_WORD),
    )
    yield Pair(
        "output channels",
        "3×3, 28×28×128: 128 output channels, or 72",
        layer(28, 128, 128, 3),
        layer(28, 128, 72, 3),
        lambda tile: padding(72, tile),
    )
    yield Pair(
        "zero padding",
        "3×3, 14×14×128: padded with ones, or with zeros",
        layer(14, 128, 128, 3),
        layer(14, 128, 128, 3, zeros=True),
        lambda tile: 1 - (12 / 14) ** 2,
    )
    yield Pair("dilation", "3×3, 28×28×128: dilation 1, or 2", layer(28, 128, 128, 3), layer(28, 128, 128, 3, 2))
    yield Pair(
        "thin groups",
        "3×3, 28×28×256: one group, or 8",
        layer(28, 256, 256, 3),
        layer(28, 256, 256, 3, groups=8),
    )
    yield Pair("odd width", "3×3, 128 channels: 28×28, or 27×27", layer(28, 128, 128, 3), layer(27, 128, 128, 3))
    yield Pair(
        "one output pixel",
        "1×1: 16×16×256 to 256, or 1×1×4096 to 4096",
        layer(16, 256, 256, 1),
        layer(1, 4096, 4096, 1),
    )
    yield _activation()
    yield _residual()
    yield _flatten()


def _activation() -> Pair:
    size, channels = 28, 128
    kept = _signs(size, channels).bconv(channels, channels, 3, activation=Activation.RELU)
    broken = _signs(size, channels).bconv(channels, channels, 3)
    broken.builtin("RELU", [broken.y], broken.y.shape)
    return _per_value(
        "activation behind the scale",
        f"{size}×{size}×{channels}: RELU in the op, or behind it",
        kept,
        broken,
        size**2 * channels,
    )


def _residual() -> Pair:
    size, channels = 28, 128

    def block(activation: Activation) -> Chain:
        chain = Chain(1, size, size, channels)
        for _ in range(2):
            before = chain.y
            chain.pack().bconv(channels, channels, 3)
            chain.builtin("ADD", [chain.y, before], before.shape, fused_activation_function=activation)
        return chain

    example = f"{size}×{size}×{channels}: RELU behind the sum, or RELU6"
    return _per_value("residual sum", example, block(Activation.RELU), block(Activation.RELU6), 2 * size**2 * channels)


def _flatten() -> Pair:
    size, channels = 14, 256
    values = size**2 * channels
    kept = _signs(size, channels).reshape(1, 1, 1, packed_words(values))
    broken = _signs(size, channels).unpack(channels).reshape(1, 1, 1, values).pack()
    example = f"{size}×{size}×{channels} flattened: as words, or unpacked and packed again"
    return _per_value("flatten", example, kept.bconv(values, 64, 1), broken.bconv(values, 64, 1), values)


def _per_value(rule: str, example: str, kept: Chain, broken: Chain, values: int) -> Pair:
    return Pair(rule, example, Side(kept.bytes(), values), Side(broken.bytes(), values), per_value=True)
