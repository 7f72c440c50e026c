"""The tensors of a converted graph that hold packed signs."""

from __future__ import annotations

from litebnn.contract import (
    BITS_PER_WORD,
    LCE_BCONV_2D,
    LCE_BMAXPOOL_2D,
    LCE_DEQUANTIZE,
    LCE_QUANTIZE,
    BConv2DOptions,
)
from litebnn.graph import Graph, Tensor, facts


def channels_of_bits(graph: Graph) -> dict[Tensor, int]:
    """Finds the tensors that hold packed signs, each with its number of channels."""
    channels: dict[Tensor, int] = {}
    for op in graph.ops:
        data = op.inputs[0] if op.inputs else None
        if op.name == LCE_QUANTIZE and data is not None:
            channels[op.output] = data.channels
        elif op.name == LCE_BCONV_2D:
            channels.setdefault(op.input(0), BConv2DOptions.decode(op.custom_options).channels_in)
            if op.output.type == "INT32":
                channels[op.output] = op.input(1).shape[0]
        elif op.name in (LCE_BMAXPOOL_2D, LCE_DEQUANTIZE):
            channels.setdefault(op.input(0), op.input(0).channels * BITS_PER_WORD)
            if op.name == LCE_BMAXPOOL_2D:
                channels[op.output] = channels[op.input(0)]
        else:
            sources = [tensor for tensor in op.inputs if tensor in channels]
            if sources and facts(op).on_signs | facts(op).moves | (op.name == "CONCATENATION"):
                channels.update((tensor, tensor.channels * BITS_PER_WORD) for tensor in op.outputs)
    return channels
