"""Finds the tensors that can become int8."""

from __future__ import annotations

from litebnn.contract import LCE_BCONV_2D, LCE_DEQUANTIZE
from litebnn.graph import Graph, Op, Tensor, facts


def activations(graph: Graph) -> list[Tensor]:
    """Returns the tensors that can become int8, in order of execution. These tensors are the model's float inputs, and
    the float outputs of ops that can write int8. Tensors inside a chain of ops that stays float (`_float_chains`) are
    left out.
    """
    computed = [
        op.output for op in graph.ops if facts(op).int8 is not None or op.name in (LCE_BCONV_2D, LCE_DEQUANTIZE)
    ]
    floats = _float_chains(graph)
    return [tensor for tensor in (*graph.inputs, *computed) if tensor.type == "FLOAT32" and tensor not in floats]


def _float_chains(graph: Graph) -> set[Tensor]:
    """Returns the tensors inside chains of elementwise ops that follow a binary layer and stay float.

    One op of such a chain has no int8 form, for example a PRELU. The library computes the chain in the binary layer's
    epilogue. Int8 tensors inside the chain would need a conversion on each side of the op.
    """
    found: set[Tensor] = set()
    seen: set[Tensor] = set()
    for op in graph.ops:
        if facts(op).int8 is not None or op.code.builtin in ("CUSTOM", "QUANTIZE", "DEQUANTIZE"):
            continue
        chain: set[Tensor] = set()
        ends = _images_of(op)
        while ends:
            tensor = ends.pop()
            if tensor in seen or _is_next_to_layer(graph, tensor):
                continue
            seen.add(tensor)
            chain.add(tensor)
            for neighbour in (graph.producer(tensor), *graph.consumers(tensor)):
                ends += [] if neighbour is None else _images_of(neighbour)
        if any(graph.producer(tensor, LCE_BCONV_2D) is not None for tensor in chain):
            found |= chain
    return found


def _images_of(op: Op) -> list[Tensor]:
    """Returns the output of an elementwise op, and its inputs of the same shape, if they are float and not constant."""
    if len(op.outputs) != 1 or op.output.type != "FLOAT32" or facts(op).layer:
        return []
    inputs = [t for t in op.inputs if t is not None and t.type == "FLOAT32" and t.shape == op.output.shape]
    return [op.output, *(t for t in inputs if not t.is_constant)] if inputs else []


def _is_next_to_layer(graph: Graph, tensor: Tensor) -> bool:
    """True if a layer with int8 weights reads or writes the tensor, or the tensor belongs to the model's interface."""
    ops = [graph.producer(tensor), *graph.consumers(tensor)]
    rules = [facts(op).int8 for op in ops if op is not None]
    has_layer = any(rule is not None and rule.weights_axis is not None for rule in rules)
    return has_layer or tensor in graph.inputs or tensor in graph.outputs
