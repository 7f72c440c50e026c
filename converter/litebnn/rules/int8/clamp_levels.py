"""QUANTIZE of a ReLU -> int8 ReLU, or no op if the grid ends where it would clamp; rounding keeps the order."""

from __future__ import annotations

from litebnn.analysis.grids import ends_within, int8_results, int8_source
from litebnn.build.int8 import quantize_op, take_results
from litebnn.build.notes import Notes, each
from litebnn.contract import ACTIVATION_RANGES
from litebnn.graph import Graph, Op, OpCode, derived, facts, like


@each()
def clamp_levels(graph: Graph, op: Op, notes: Notes) -> bool:
    clamp, rule = facts(op).clamp, facts(op).int8
    if clamp is None or rule is None or op.output.type != "FLOAT32" or int8_source(graph, op.input(0)) is not None:
        return False
    quantizers = int8_results(graph, op.output)
    if not quantizers:
        return False
    result, x = quantizers[0].output, op.input(0)
    levels = like(x, derived(op.output.name, "/int8"), type="INT8")
    levels.quantization = result.quantization
    quantizer = graph.insert(quantize_op(x, levels), before=op)
    take_results(graph, op, quantizers)
    if ends_within(result, *ACTIVATION_RANGES[clamp]):
        graph.remove(op)
        graph.set_output(quantizer, result)
    else:
        graph.set_input(op, 0, levels)
        op.code = OpCode(op.name, "", rule.version)
    return True
