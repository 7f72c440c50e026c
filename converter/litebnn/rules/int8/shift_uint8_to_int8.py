"""The uint8 QUANTIZE and DEQUANTIZE ops of fake quantization become int8 ops with the same scale, and a zero point that
is lower by 128."""

from __future__ import annotations

from litebnn.analysis.quantization import parameters
from litebnn.graph import Graph, Op, OpCode
from litebnn.rules.build.notes import Notes, each


@each("QUANTIZE")
def shift_uint8_to_int8(graph: Graph, op: Op, notes: Notes) -> bool:
    result, readers = op.output, graph.consumers(op.output)
    grid = result.quantization
    if result.type != "UINT8" or grid is None or graph.is_output(result):
        return False
    if any(reader.name != "DEQUANTIZE" for reader in readers):
        return False
    result.type = "INT8"
    result.quantization = parameters(grid.scale, grid.zero_point - 128, grid.axis)
    for reader in readers:
        reader.code = OpCode("DEQUANTIZE", "", 2)
    return True
