"""Computes two lower bounds for the time of a network, the floor and the bound.

The floor is the time of the float layers, and of the binary multiply-adds in the inner loop. The bound adds the time of
work that no rewrite can remove. This work is stores of the binary layers' outputs, bytes that move between ops, and
reads of weights that are used only once.
"""

import math
import re
from typing import NamedTuple

from bench.kernels.__main__ import Counter, build, count_layer, output_of
from bench.kernels.model import loops_of, parse_listing
from litebnn.contract import LCE_BCONV_2D, LCE_QUANTIZE
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import NUMPY_TYPES, Graph, Tensor, facts, like
from litebnn.report.macs import count_macs
from toolchains.targets import Target, ToolkitError, find_target

FLOAT_LAYERS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")
MACS_PER_BYTE = 8  # binary multiply-adds per byte of weights that are used once
VALUE_BY_VALUE = ("ADD", "MUL", "SUB", "PRELU", "RELU", "RELU6", LCE_QUANTIZE)


def float_layers(model: bytes) -> bytes:
    """Returns a converted model's float convolutions and dense layers as a model of their own.

    Each layer reads inputs of the new model and writes one of its outputs, so that no layer waits for another.
    """
    whole = read_model(model)
    graph = whole.graphs[0]
    layers = [op for op in graph.ops if op.name in FLOAT_LAYERS]
    for op in [op for op in graph.ops if op not in layers]:
        graph.remove(op)
    for place, op in enumerate(layers):
        data = facts(op).data
        graph.set_input(op, data, like(op.input(data), f"input {place}"))
    of_layers = [tensor for op in layers for tensor in (*op.inputs, *op.outputs) if tensor is not None]
    graph.tensors = list(dict.fromkeys(of_layers))
    graph.inputs = [tensor for tensor in graph.tensors if not tensor.is_constant and graph.producer(tensor) is None]
    graph.outputs = [op.output for op in layers]
    whole.graphs, whole.signatures = [graph], None
    return write_model(whole)


class BinaryWork(NamedTuple):
    """The work of a network without its float layers, as one amount for each kind of work: multiply-adds, outputs,
    bytes moved, and bytes of weights.
    """

    # The number of binary multiply-adds.
    macs: float
    # The number of values that binary convolutions write, except packed signs.
    outputs: float
    # The bytes that ops other than float layers read and write (see `moved_bytes`).
    moved: float
    # The bytes of the packed filters of dense layers, which have one output pixel.
    weights: float

    def seconds(self, speeds: "BinaryWork") -> "BinaryWork":
        """The seconds that each kind of work takes. `speeds` has the amount of each kind that the CPU does in a
        second.
        """
        return BinaryWork(*(work / speed for work, speed in zip(self, speeds, strict=True)))


def binary_work(model: bytes) -> BinaryWork:
    """The work of a converted model, apart from its float layers."""
    graph = read_model(model).graphs[0]
    layers = [op for op in graph.ops if op.name == LCE_BCONV_2D]
    values = sum(math.prod(op.output.shape) for op in layers if op.output.type != "INT32")
    weights = sum(_bytes(op.input(1)) for op in layers if math.prod(op.output.shape[:-1]) == 1)
    return BinaryWork(count_macs(model).binary, values, moved_bytes(graph), weights)


def moved_bytes(graph: Graph) -> int:
    """The bytes that ops other than float layers read and write.

    Reads and writes of float layers are part of these layers' times. A tensor that only one elementwise op reads, and
    that no float layer writes, is not counted, because both ops could be fused.
    """
    moved = 0
    for tensor in graph.tensors:
        writer, readers = graph.producer(tensor), graph.consumers(tensor)
        by_layer = writer is not None and writer.name in FLOAT_LAYERS
        stays = len(readers) == 1 and readers[0].name in VALUE_BY_VALUE
        if tensor.is_constant or writer is None or (stays and not by_layer):
            continue
        moves = sum(op.name not in FLOAT_LAYERS for op in readers) + (not by_layer)
        moved += moves * _bytes(tensor)
    return moved


def _bytes(tensor: Tensor) -> int:
    return math.prod(tensor.shape) * NUMPY_TYPES[tensor.type].itemsize


def speeds(isa: str) -> BinaryWork:
    """Measures the amount of each kind of work that one thread of this CPU can do in a second with `isa`. If `isa` is
    "", the best instruction set of the CPU is used.

    The speeds of multiply-adds and outputs are those of the ISA's loops in the L1 cache. Bytes move at the speed of
    copying a tensor of 56x56x64 floats. Weights are read at the speed of reading 8 MiB, because other data displaces
    them from the L2 cache between two inferences. The multiply-adds with these weights overlap with the reads, so only
    the time that exceeds the multiply-adds counts.

    Raises:
        ToolkitError: the kernels' benchmark cannot be built, or has no loops for this CPU.
    """
    program = build(find_target("host")) / "bench" / "kernels" / "kernels_bench"
    found = re.search(
        r"loop ([\d.]+) GMAC/s, outputs ([\d.]+) G/s, read and written ([\d.]+) GB/s, weights ([\d.]+) GB/s",
        output_of([program, "--only=bounds", *([f"--isa={isa}"] if isa else [])]),
    )
    if found is None:
        raise ToolkitError("the kernels' benchmark knows no inner loop of this CPU")
    macs, outputs, moved, read = (float(speed) * 1e9 for speed in found.groups())
    longer = 1 / read - MACS_PER_BYTE / macs
    return BinaryWork(macs, outputs, moved, 1 / longer if longer > 0 else math.inf)


def inner_loop_instructions(target: Target, isa: str) -> float:
    """The number of instructions per binary multiply-add in the inner loop of `isa`. If `isa` is "", it is the loop
    that the target's emulated CPU runs.

    Raises:
        ToolkitError: the kernels' benchmark cannot be built or run.
    """
    program = build(target) / "bench" / "kernels" / "kernels_bench"
    layer = count_layer(Counter(target), program, isa, "bconv 3x3 14x14x256")
    listing = output_of([f"{target.triple}-objdump", "-d", "--no-show-raw-insn", program])
    loops, _ = loops_of(layer.blocks, parse_listing(listing))
    inner = max(loops, key=lambda loop: loop.macs * loop.executions)
    return len(inner.instructions) / inner.macs
