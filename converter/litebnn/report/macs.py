"""Counting the work of a .tflite file."""

from __future__ import annotations

import math
from typing import NamedTuple

from litebnn.contract import LCE_BCONV_2D
from litebnn.flatbuffer import read_model
from litebnn.rewriting.bconv import channels_per_group
from litebnn.rewriting.notes import macs_of


class Macs(NamedTuple):
    """Multiply-accumulates by what is multiplied."""

    binary: int
    int8: int
    float: int

    @property
    def other(self) -> int:
        """All that are not binary."""
        return self.int8 + self.float


def count_macs(model: bytes) -> Macs:
    """The multiply-accumulates of the convolutions and dense layers, for one inference.

    Int8 are those of layers that read int8.

    Args:
        model: a `.tflite` file, converted or not.

    Example:
        >>> count_macs(Path("binary.tflite").read_bytes())
        Macs(binary=2434112, int8=0, float=194688)
    """
    binary = int8 = real = 0
    for op in read_model(model).ops():
        if op.name == LCE_BCONV_2D:
            _, height, width, _ = op.input(1).shape
            positions = math.prod(op.output.shape[:3])
            binary += positions * op.input(1).shape[0] * height * width * channels_per_group(op)
        elif len(op.inputs) > 1 and op.inputs[1] is not None and op.outputs:
            if op.input(2 if op.name == "TRANSPOSE_CONV" else 0).type == "INT8":
                int8 += macs_of(op)
            else:
                real += macs_of(op)
    return Macs(binary, int8, real)
