"""Counts the values of which the option `assume_nonzero` says that they do not occur: inputs of a sign that are exactly
0."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from litebnn.graph import Array, Model, Tensor

# The largest share of a sign's inputs that may be exactly 0 by accident. A larger share is a property of the model.
_RARE = 0.01


@dataclass(frozen=True)
class AssumedSign:
    """A sign that has a third value in the source, such as sign(0) = 0."""

    # The name of the sign's output in the source.
    name: str
    # The name of the tensor whose sign it is, and the number at which the third value occurs.
    x: str
    level: float


@dataclass(frozen=True)
class Assumed:
    """A source model as `assume_nonzero` takes it, which is what the converted model should compute."""

    # The `.tflite` file: signs are +1 at their third value, and weights that count as +1 are +alpha.
    source: bytes
    signs: tuple[AssumedSign, ...]
    # The number of weights that are 0 and count as +1.
    zero_weights: int = 0


@dataclass(frozen=True)
class ExactZeros:
    """The inputs of a sign that are exactly 0, which `assume_nonzero` takes for +1."""

    # The name of the sign's output in the source.
    sign: str
    zeros: int
    inputs: int

    @property
    def are_common(self) -> bool:
        """True if there are too many to be an accident."""
        return self.zeros > max(1, _RARE * self.inputs)

    def __str__(self) -> str:
        if self.are_common:
            share = f"{self.zeros / self.inputs:.1%} of its inputs are"
            return f'"{self.sign}": {share} exactly 0, so assume_nonzero changes the results'
        return f'"{self.sign}": {_of(self.zeros, self.inputs)} of sign {_was(self.zeros)} exactly 0'


def in_words(zeros: Iterable[ExactZeros]) -> str:
    """A clause with the number of all zeros; empty if there are none.

    >>> in_words([ExactZeros("a", 1, 1000), ExactZeros("b", 2, 3000)])
    '3 of 4,000 inputs of sign were exactly 0, which assume_nonzero takes as +1'
    """
    found = [each for each in zeros if each.zeros]
    count = sum(each.zeros for each in found)
    if not count:
        return ""
    total = _of(count, sum(each.inputs for each in found))
    return f"{total} of sign {_was(count)} exactly 0, which assume_nonzero takes as +1"


def _of(zeros: int, inputs: int) -> str:
    return f"{zeros:,} of {inputs:,} inputs"


def _was(zeros: int) -> str:
    return "was" if zeros == 1 else "were"


def tensors_of(model: Model, signs: Iterable[AssumedSign]) -> list[Tensor]:
    """The tensor whose sign each of `signs` is."""
    by_name = {tensor.name: tensor for tensor in reversed([*model.graphs[0].all_tensors()])}
    return [by_name[sign.x] for sign in signs]


def counted(signs: Iterable[AssumedSign], values: Iterable[Array]) -> list[ExactZeros]:
    """Counts the exact zeros of each sign among the values of its inputs."""
    pairs = zip(signs, values, strict=True)
    return [ExactZeros(sign.name, int(np.sum(x == np.float32(sign.level))), x.size) for sign, x in pairs]


def by_sign(found: Iterable[ExactZeros]) -> tuple[ExactZeros, ...]:
    """Adds up the counts of several samples."""
    signs: dict[str, list[ExactZeros]] = {}
    for one in found:
        signs.setdefault(one.sign, []).append(one)
    return tuple(
        ExactZeros(name, sum(one.zeros for one in same), sum(one.inputs for one in same))
        for name, same in signs.items()
    )
