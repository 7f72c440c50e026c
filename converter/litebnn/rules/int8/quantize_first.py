"""A QUANTIZE moves before a ReLU, before ops that move the outputs of layers, and into binary layers, which write int8.

Layers round as QUANTIZE does, and rounding keeps the order of values, so that a max pool gives the same levels. A ReLU
is removed if the quantized range ends where the ReLU clamps. An average pool rounds the average of rounded values, as
TensorFlow's converter makes it: its levels may differ by one. The QUANTIZE does not move before it if its range could
clip a value that is averaged.
"""

from __future__ import annotations

from litebnn.analysis.layouts import floats_moved
from litebnn.analysis.numbers.ranges import range_of
from litebnn.analysis.quantization import covers, ends_within, int8_results, int8_source, trained_weights
from litebnn.contract import ACTIVATION_RANGES, LCE_BCONV_2D, LCE_DEQUANTIZE
from litebnn.graph import Graph, Op, OpCode, Tensor, derived, facts, like
from litebnn.rules.build.bconv import is_of_binary_convs, is_of_layers
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
        read = [op.input(0)] if op.name == "AVERAGE_POOL_2D" else floats_moved(op)
        fits = all(_is_of_layers(graph, tensor) for tensor in read)
    else:
        read = [op.input(0)]
        fits = int8_source(graph, op.input(0)) is None
    quantizers = int8_results(graph, op.output) if read and fits else []
    if not quantizers:
        return False
    result = quantizers[0].output
    if op.name == "AVERAGE_POOL_2D" and not covers(result, *range_of(graph, op.input(0))):
        return False
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


def _is_of_layers(graph: Graph, tensor: Tensor) -> bool:
    """True if a tensor holds outputs of binary layers, or of layers that become int8 if these are quantized."""
    if is_of_binary_convs(graph, tensor, floats_moved):
        return True
    return is_of_layers(graph, tensor, lambda op: _is_trained(graph, op), _passed)


def _is_trained(graph: Graph, op: Op) -> bool:
    rule = facts(op).int8
    if rule is None or rule.weights_axis is None or trained_weights(graph, op.input(1)) is None:
        return False
    return int8_source(graph, op.inputs[facts(op).data]) is not None


def _passed(op: Op) -> list[Tensor]:
    """The inputs of an op before which a QUANTIZE moves."""
    return floats_moved(op) if facts(op).clamp is None else [op.input(0)]


def _write_int8(graph: Graph, op: Op, notes: Notes) -> bool:
    quantizers = int8_results(graph, op.output)
    if quantizers:
        take_results(graph, op, quantizers)
        notes.fused(op, "QUANTIZE")
    return bool(quantizers)
