"""The weights of a float convolution take a bit each in the file if they are ±alpha, and two if some are 0.

The library unpacks them once, when a runtime loads the model. The runtime's own convolution then reads floats.
"""

from __future__ import annotations

from litebnn.analysis.quantization import undequantized
from litebnn.analysis.weights import NOT_TERNARY, PACKABLE, layer_weights, packed_weights
from litebnn.contract import LITEBNN_UNPACK_WEIGHTS
from litebnn.graph import Graph, Op, constant, derived, facts, like
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import custom_op


@each(*PACKABLE)
def pack_weights(graph: Graph, op: Op, notes: Notes) -> bool:
    if graph.producer(op.input(1), LITEBNN_UNPACK_WEIGHTS) is not None:
        return False
    stored = undequantized(graph, op.input(1)).type
    reason = _pack(graph, op, notes)
    return reason is None or notes.left_alone(op, f"{reason}, so its weights stay {stored}")


def _pack(graph: Graph, op: Op, notes: Notes) -> str | None:
    """Rewrites a convolution, or returns the reason why it stays as it is."""
    old = op.input(1)
    if notes.options["larq_compatible"]:
        return "Larq's runtime cannot unpack weights"
    if op.input(facts(op).data).type != "FLOAT32" or old.type != "FLOAT32":
        return "only convolutions in float read packed weights"
    weights = layer_weights(graph, op)
    if weights is None:
        return "its weights are not a float constant"
    packed = packed_weights(op, weights)
    if packed is None:
        return NOT_TERNARY
    if packed.saved_bytes(weights.size, undequantized(graph, old).type) <= 0:
        return "packed weights would not make the file smaller"
    inputs = [constant(derived(old.name, f"/{name}"), values) for name, values in packed.arrays.items()]
    unpacked = like(old, derived(old.name, "/unpacked"), type="FLOAT32", dims=weights.shape)
    # All weights are unpacked first. Between the layers, they would split what the runtime's delegate takes at once.
    graph.insert(custom_op(LITEBNN_UNPACK_WEIGHTS, inputs, unpacked), before=graph.ops[0])
    graph.set_input(op, 1, unpacked)
    bits = "a bit" if packed.zeros is None else "2 bits"
    notes.warn(op, f"its weights take {bits} each, which needs litebnn's library; results stay what they were")
    return None
