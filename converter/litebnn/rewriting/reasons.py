"""Why the input of a layer is no sign, in words."""

from __future__ import annotations

from litebnn.graph import Graph, Tensor

NO_SIGN = "its input is not the output of a sign"
# The output of a quantizer passes these on its way to a layer.
_PASSED = ("MUL", "DIV", "ADD", "SUB", "PAD", "PADV2", "MAX_POOL_2D", "RESHAPE", "DEQUANTIZE", "QUANTIZE")
_FARTHEST = 5


def why_no_sign(graph: Graph, tensor: Tensor) -> str:
    """The reason that a layer which reads `tensor` is not binary."""
    for _ in range(_FARTHEST):
        op = graph.producer(tensor)
        if op is None or not op.inputs or op.inputs[0] is None:
            break
        if op.name in ("ROUND", "FLOOR"):
            return "its input takes several levels (a DoReFa quantizer), not ±1"
        if op.name == "SIGN":
            source = graph.producer(op.input(0))
            if source is not None and source.name == "RELU":
                return "its input takes 0 and 1 (a heaviside quantizer), not ±1"
            return "its input is sign(x), which is 0 where x is 0 (ternary): use ste_sign"
        if op.name == "CAST" and op.input(0).type == "BOOL":
            return "its input takes two values that are not ±1"
        if op.name not in _PASSED:
            break
        tensor = op.input(0)
    return NO_SIGN
