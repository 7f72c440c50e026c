"""Counting the work of a .tflite file."""

from __future__ import annotations

import math

from litebnn.contract import LCE_BCONV_2D
from litebnn.flatbuffer import read_model
from litebnn.rewriting.bconv import channels_per_group
from litebnn.rewriting.notes import macs_of


def count_macs(model: bytes) -> tuple[int, int]:
    """(binary, other) multiply-accumulates of the convolutions and dense layers, for one inference.

    Args:
        model: a `.tflite` file, converted or not.
    """
    binary = other = 0
    for op in read_model(model).ops():
        if op.name == LCE_BCONV_2D:
            _, height, width, _ = op.input(1).shape
            positions = math.prod(op.output.shape[:3])
            binary += positions * op.input(1).shape[0] * height * width * channels_per_group(op)
        elif len(op.inputs) > 1 and op.inputs[1] is not None and op.outputs:
            other += macs_of(op)
    return binary, other
