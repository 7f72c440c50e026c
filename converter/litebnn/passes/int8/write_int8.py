"""QUANTIZE(LceBconv2d) and QUANTIZE(LceDequantize) -> the op writes int8 itself, rounding in the same way."""

from __future__ import annotations

from litebnn.contract import LCE_BCONV_2D, LCE_DEQUANTIZE
from litebnn.graph import Graph, Op, OpCode, Tensor, facts
from litebnn.rewriting.build import derived, like
from litebnn.rewriting.each import each
from litebnn.rewriting.int8 import int8_results, quantize_op, take_results
from litebnn.rewriting.notes import Notes


@each(LCE_BCONV_2D, LCE_DEQUANTIZE)
def write_int8(graph: Graph, op: Op, notes: Notes) -> bool:
    if op.output.type != "FLOAT32":
        return False
    quantizers = int8_results(graph, op.output) or _quantizers_before_reshape(graph, op.output)
    if not quantizers:
        return False
    take_results(graph, op, quantizers)
    notes.fused(op, "QUANTIZE")
    return True


def _quantizers_before_reshape(graph: Graph, tensor: Tensor) -> list[Op]:
    """QUANTIZE(RESHAPE(tensor)) -> RESHAPE(QUANTIZE(tensor)), which is the same; what has become of the QUANTIZE ops.

    A binary dense layer is a convolution between two reshapes.
    """
    reshape = graph.sole_consumer(tensor)
    rule = None if reshape is None else facts(reshape).int8
    if reshape is None or rule is None or not facts(reshape).reshapes:
        return []
    quantizers = int8_results(graph, reshape.output)
    if not quantizers:
        return []
    levels = like(tensor, derived(tensor.name, "/int8"), type="INT8")
    levels.quantization = quantizers[0].output.quantization
    quantizer = graph.insert(quantize_op(tensor, levels), before=reshape)
    graph.set_input(reshape, 0, levels)
    reshape.code = OpCode(reshape.name, "", rule.version)
    take_results(graph, reshape, quantizers)
    return [quantizer]
