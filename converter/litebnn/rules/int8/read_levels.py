"""An LceQuantize or QUANTIZE that reads the output of a DEQUANTIZE reads the int8 tensor directly instead. If a
QUANTIZE has the same scale and zero point as this tensor, it is removed."""

from __future__ import annotations

from litebnn.analysis.quantization import int8_source, is_int8, same_parameters
from litebnn.contract import LCE_QUANTIZE
from litebnn.graph import Graph, Op
from litebnn.rules.build.notes import Notes, each


@each(LCE_QUANTIZE, "QUANTIZE")
def read_levels(graph: Graph, op: Op, notes: Notes) -> bool:
    source = int8_source(graph, op.input(0))
    if source is None or (op.name == "QUANTIZE" and not is_int8(op.output)):
        return False
    if not (same_parameters(source, op.output) and graph.bypass(op, source)):
        graph.set_input(op, 0, source)
    return True
