"""The uint8 QUANTIZE and DEQUANTIZE ops of fake quantization become int8 ops with the same scale, and a zero point that
is lower by 128."""

from __future__ import annotations

from litebnn.analysis.grids import parameters
from litebnn.build.notes import Notes, each
from litebnn.graph import Graph, Op, OpCode, Tensor


@each("QUANTIZE", lowers="uint8 tensors")
def shift_uint8_to_int8(graph: Graph, op: Op, notes: Notes) -> bool:
    if not _is_fake(graph, op.output):
        return False
    result = op.output
    grid = result.quantization
    assert grid is not None
    result.type = "INT8"
    result.quantization = parameters(grid.scale, grid.zero_point - 128, grid.axis)
    for reader in graph.consumers(result):
        reader.code = OpCode("DEQUANTIZE", "", 2)
    return True


def _is_fake(graph: Graph, tensor: Tensor) -> bool:
    """True if all consumers of the uint8 tensor convert it back to float."""
    return (
        tensor.type == "UINT8"
        and tensor.quantization is not None
        and not graph.is_output(tensor)
        and all(reader.name == "DEQUANTIZE" for reader in graph.consumers(tensor))
    )
