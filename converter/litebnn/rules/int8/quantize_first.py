"""A QUANTIZE moves before a ReLU, before ops that move the outputs of binary layers, and into these layers, which write
int8.

Layers round as QUANTIZE does, and rounding keeps the order of values. A ReLU is removed if the quantized range ends
where the ReLU clamps.
"""

from __future__ import annotations

from litebnn.analysis.layouts import floats_moved
from litebnn.analysis.quantization import ends_within, int8_results, int8_source
from litebnn.contract import ACTIVATION_RANGES, LCE_BCONV_2D, LCE_DEQUANTIZE
from litebnn.graph import Graph, Op, OpCode, derived, facts, like
from litebnn.rules.build.bconv import is_of_binary_convs
from litebnn.rules.build.int8 import quantize_op
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import take_results


@each()
def quantize_first(graph: Graph, op: Op, notes: Notes) -> bool:
    rule, clamp = facts(op).int8, facts(op).clamp
    if op.name in (LCE_BCONV_2D, LCE_DEQUANTIZE) and op.output.type == "FLOAT32":
        return _write_int8(graph, op, notes)
    if rule is None or op.output.type != "FLOAT32":
        return False
    if clamp is None:
        read = floats_moved(op)
        fits = all(is_of_binary_convs(graph, tensor, floats_moved) for tensor in read)
    else:
        read = [op.input(0)]
        fits = int8_source(graph, op.input(0)) is None
    quantizers = int8_results(graph, op.output) if read and fits else []
    if not quantizers:
        return False
    result = quantizers[0].output
    for index, tensor in enumerate(read):
        name = tensor.name if clamp is None else op.output.name
        levels = like(tensor, derived(name, "/int8"), type="INT8", quantization=result.quantization)
        quantizer = graph.insert(quantize_op(tensor, levels), before=op)
        graph.set_input(op, index, levels)
    op.code = OpCode(op.name, "", rule.version)
    take_results(graph, op, quantizers)
    if clamp is not None and ends_within(result, *ACTIVATION_RANGES[clamp]):
        graph.remove(op)
        graph.set_output(quantizer, result)
    return True


def _write_int8(graph: Graph, op: Op, notes: Notes) -> bool:
    quantizers = int8_results(graph, op.output)
    if quantizers:
        take_results(graph, op, quantizers)
        notes.fused(op, "QUANTIZE")
    return bool(quantizers)
