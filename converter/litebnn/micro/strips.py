"""Strips are chains of ops that are computed a few rows at a time. Therefore large images between the ops are never
stored as a whole.

For example, the float output of a convolution is large, but the packed signs of this output are small. The convolution
therefore computes only a few rows, from which the next ops compute rows of packed signs. The convolution then writes
its next rows to the same memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from litebnn.contract import (
    LCE_BCONV_2D,
    LCE_BMAXPOOL_2D,
    LCE_DEQUANTIZE,
    LCE_QUANTIZE,
    BMaxPool2DOptions,
)
from litebnn.graph import Graph, Op, Tensor
from litebnn.micro.lowering.elementwise import UNARY
from litebnn.micro.program import C_TYPES

_HEADS = ("CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "AVERAGE_POOL_2D", LCE_BCONV_2D)
_BY_PIXEL = (*UNARY, "QUANTIZE", "DEQUANTIZE", LCE_QUANTIZE, LCE_DEQUANTIZE)
_BINARY = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "PRELU")


@dataclass(frozen=True)
class Strip:
    """A chain of ops that are computed together, a few rows at a time."""

    # The ops in order of execution. The first op must be able to compute a single row of its output.
    ops: tuple[Op, ...]
    # The number of rows of the last op's output. Each iteration computes one of these rows.
    iterations: int
    # For each tensor that one op of the strip writes and the next one reads, the number of rows that one iteration
    # needs.
    heights: dict[Tensor, int]


def find_strips(graph: Graph, shared: dict[Tensor, Tensor]) -> Iterator[Strip | Op]:
    """Yields the graph's ops in order. Some chains of ops need less memory if they are computed a few rows at a time.
    In place of such a chain, the function yields one Strip.

    Args:
        shared: for each tensor that lies in the memory of another tensor, that other tensor. The tensors of a strip
        must have memory of their own.
    """
    taken: set[Op] = set()
    strips: dict[Op, Strip] = {}
    for op in graph.ops:
        if op not in taken and (strip := _strip_from(graph, op, shared, taken)) is not None:
            taken.update(strip.ops)
            # In the order of execution, a chain of ops that run together takes the place of its last op. Only there,
            # all inputs of the chain's ops have been computed.
            strips[strip.ops[-1]] = strip
    for op in graph.ops:
        if op in strips:
            yield strips[op]
        elif op not in taken:
            yield op


def bytes_of(tensor: Tensor, rows: int | None = None) -> int:
    """The number of bytes of a tensor, or of some rows of an image."""
    size = C_TYPES[tensor.type][2] if tensor.type in C_TYPES else 4
    for axis, length in enumerate(tensor.shape):
        size *= rows if rows is not None and axis == 1 else length
    return size


def _strip_from(graph: Graph, head: Op, shared: dict[Tensor, Tensor], taken: set[Op]) -> Strip | None:
    """Among the chains of ops that start with `head`, the one that needs the least memory; None if no chain saves
    memory.

    The chain ends before the ops in `taken`, which are part of another strip.
    """
    if head.name not in _HEADS or len(head.output.shape) != 4 or head.output.shape[0] != 1:
        return None
    best, chain, steps = None, [head], [1]
    least = bytes_of(head.output)
    while (follower := _follower(graph, chain[-1].output, shared)) is not None:
        stride = _rows_of(follower)
        if follower in taken or stride == 0:
            break
        chain.append(follower)
        steps.append(stride)
        rows, heights = 1, {}
        for op, factor in zip(reversed(chain), reversed(steps), strict=True):
            if op is not chain[-1]:
                heights[op.output] = rows
            rows *= factor
        needed = bytes_of(chain[-1].output) + sum(bytes_of(tensor, height) for tensor, height in heights.items())
        if needed < least:
            least, best = needed, Strip(tuple(chain), chain[-1].output.shape[1], heights)
    return best


def _follower(graph: Graph, tensor: Tensor, shared: dict[Tensor, Tensor]) -> Op | None:
    op = graph.sole_consumer(tensor)
    if op is None or tensor in shared or len(op.outputs) != 1 or len(op.output.shape) != 4:
        return None
    return op


def _rows_of(op: Op) -> int:
    """The number of input rows that an op needs for one output row. The number is 0 for ops that cannot run row by row
    in a chain (a strip), such as pools whose windows share rows."""
    if op.name in _BY_PIXEL:
        return 1 if op.input(0).shape[:3] == op.output.shape[:3] else 0
    if op.name in _BINARY:
        shapes = [tensor.shape for tensor in op.inputs if tensor is not None and not tensor.is_constant]
        constants = [tensor.shape for tensor in op.inputs if tensor is not None and tensor.is_constant]
        is_same = all(shape == op.output.shape for shape in shapes)
        return int(is_same and all(len(shape) < 3 or shape[-3] == 1 for shape in constants))
    if op.name in ("MAX_POOL_2D", "AVERAGE_POOL_2D"):
        return _pool_rows(op, op.options.filter_height, op.options.stride_h)
    if op.name == LCE_BMAXPOOL_2D:
        options = BMaxPool2DOptions.decode(op.custom_options)
        return _pool_rows(op, options.filter_height, options.stride_height)
    return 0


def _pool_rows(op: Op, taps: int, stride: int) -> int:
    """The vertical stride of a pool if its windows do not overlap and need no padding above and below; 0 for other
    pools.
    """
    return stride if taps == stride and op.output.shape[1] * stride <= op.input(0).shape[1] else 0
