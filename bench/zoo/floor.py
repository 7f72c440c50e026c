"""What a network cannot be faster than: its float layers and its binary multiply-adds in the inner loop, alone."""

import re

from bench.kernels.__main__ import Counter, build, count_layer, output_of
from bench.kernels.model import loops_of, parse_listing
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import facts
from litebnn.rewriting.build import like
from toolchains.targets import Target, ToolkitError, find_target

FLOAT_LAYERS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")


def float_layers(model: bytes) -> bytes:
    """The convolutions and dense layers of a converted model that are not binary, and nothing else.

    Each reads inputs of the model and writes an output of it, so that none waits for another.
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


def inner_loop_speed() -> float:
    """Binary multiply-adds a second of this CPU's fastest inner loop, on data in the L1 cache, on one thread.

    Raises:
        ToolkitError: the benchmark of the kernels cannot be built, or knows no loop of this CPU.
    """
    program = build(find_target("host")) / "bench" / "kernels" / "kernels_bench"
    printed = output_of([program, "--only=bconv 3x3"])
    speeds = [float(speed) for speed in re.findall(r"% of loop (\d+)", printed)]
    if not speeds:
        raise ToolkitError("the kernels' benchmark knows no inner loop of this CPU")
    return max(speeds) * 1e9


def inner_loop_instructions(target: Target) -> float:
    """Instructions for each binary multiply-add, of the inner loop that the target's emulated CPU runs.

    Raises:
        ToolkitError: the benchmark of the kernels cannot be built or run.
    """
    program = build(target) / "bench" / "kernels" / "kernels_bench"
    layer = count_layer(Counter(target), program, "", "bconv 3x3 14x14x256")
    listing = output_of([f"{target.triple}-objdump", "-d", "--no-show-raw-insn", program])
    loops, _ = loops_of(layer.blocks, parse_listing(listing))
    inner = max(loops, key=lambda loop: loop.macs * loop.executions)
    return len(inner.instructions) / inner.macs
