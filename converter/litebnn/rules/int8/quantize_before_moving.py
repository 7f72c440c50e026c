"""QUANTIZE after an op that moves binary layers' outputs -> QUANTIZE before it, so that the layers write int8."""

from __future__ import annotations

from litebnn.analysis.grids import int8_results
from litebnn.build.int8 import quantize_op, take_results
from litebnn.build.notes import Notes, each
from litebnn.contract import LCE_BCONV_2D
from litebnn.graph import Graph, Op, OpCode, Tensor, derived, facts, like

_FARTHEST = 8


@each()
def quantize_before_moving(graph: Graph, op: Op, notes: Notes) -> bool:
    rule, moved = facts(op).int8, _moved(op)
    if rule is None or not moved or not all(_is_of_binary_layer(graph, tensor, _FARTHEST) for tensor in moved):
        return False
    quantizers = int8_results(graph, op.output)
    if not quantizers:
        return False
    for index, tensor in enumerate(moved):
        levels = like(tensor, derived(tensor.name, "/int8"), type="INT8")
        levels.quantization = quantizers[0].output.quantization
        graph.insert(quantize_op(tensor, levels), before=op)
        graph.set_input(op, index, levels)
    op.code = OpCode(op.name, "", rule.version)
    take_results(graph, op, quantizers)
    return True


def _moved(op: Op) -> list[Tensor]:
    """The float inputs whose values an op moves."""
    inputs = op.inputs if op.name == "CONCATENATION" else op.inputs[:1] if facts(op).moves else []
    return [tensor for tensor in inputs if tensor is not None and tensor.type == "FLOAT32"]


def _is_of_binary_layer(graph: Graph, tensor: Tensor, farthest: int) -> bool:
    op = graph.producer(tensor)
    if op is None or graph.sole_consumer(tensor) is None or farthest == 0:
        return False
    moved = _moved(op)
    return op.name == LCE_BCONV_2D or (
        bool(moved) and all(_is_of_binary_layer(graph, source, farthest - 1) for source in moved)
    )
