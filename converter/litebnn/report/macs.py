"""Counts the multiply-accumulates of a .tflite file."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from litebnn.contract import LCE_BCONV_2D
from litebnn.flatbuffer import read_model
from litebnn.graph import Op, facts
from litebnn.rules.build.bconv import channels_per_group
from litebnn.rules.build.notes import macs_of


class Macs(NamedTuple):
    """Multiply-accumulates by precision."""

    binary: int
    int8: int
    float: int

    @property
    def other(self) -> int:
        """All multiply-accumulates that are not binary."""
        return self.int8 + self.float


def count_macs(model: bytes) -> Macs:
    """Counts the multiply-accumulates of the convolutions and dense layers, for one inference.

    Layers that read int8 count as int8.

    Args:
        model: a `.tflite` file, converted or not.

    Example:
        >>> count_macs(Path("model.tflite").read_bytes())
        Macs(binary=2599552, int8=0, float=194688)
    """
    return sum_of_macs(map(macs_by_precision, read_model(model).ops()))


def sum_of_macs(counts: Iterable[Macs]) -> Macs:
    """The sum of the multiply-accumulates of several ops."""
    binary, int8, real = (sum(column) for column in zip(Macs(0, 0, 0), *counts, strict=True))
    return Macs(binary, int8, real)


def macs_by_precision(op: Op) -> Macs:
    """The multiply-accumulates of one op."""
    if op.name == LCE_BCONV_2D:
        _, height, width, _ = op.input(1).shape
        positions = math.prod(op.output.shape[:3])
        return Macs(positions * op.input(1).shape[0] * height * width * channels_per_group(op), 0, 0)
    if len(op.inputs) < 2 or op.inputs[1] is None or not op.outputs:
        return Macs(0, 0, 0)
    is_int8 = op.input(facts(op).data).type == "INT8"
    return Macs(0, macs_of(op), 0) if is_int8 else Macs(0, 0, macs_of(op))
