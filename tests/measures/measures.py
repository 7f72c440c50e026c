"""Computes the measures that the converter's rules lower (`lowers` in `build/notes.py`).

Each function takes a graph and returns a number, or a list that is compared from its first element on. Ops whose
results nobody reads do not count.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from litebnn.analysis.layouts import copies_pixels
from litebnn.analysis.match import SIGNS, THRESHOLD, fused_activation
from litebnn.analysis.padding import PADS, without_zeros
from litebnn.analysis.quantizable import activations
from litebnn.analysis.signs import find_sign
from litebnn.analysis.sums import padded_values, values_read
from litebnn.analysis.weights import PACKABLE, uneven_weights
from litebnn.build.bconv import bconv_options, is_float_bconv
from litebnn.build.notes import Notes, Rule
from litebnn.build.signs import holds_signs
from litebnn.contract import LCE_BCONV_2D, LCE_DEQUANTIZE, LITEBNN_UNPACK_WEIGHTS, Activation
from litebnn.graph import Graph, Op, Tensor, facts
from litebnn.rules.binarize.scale_behind_layers import scaled_input
from litebnn.rules.canonical.recognize_clamps import find_clamp, find_extreme
from litebnn.rules.canonical.remove_dead_ops import _is_pure

Measure: TypeAlias = Callable[[Graph], Any]
_LAYERS = ("CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "CONV_3D")
_MOVING = ("RESHAPE", "EXPAND_DIMS", "SQUEEZE", "DEPTH_TO_SPACE", "CONCATENATION", "STRIDED_SLICE", "MAX_POOL_2D")


def live(graph: Graph) -> list[Op]:
    """Returns the ops on which an output depends, and the ops that do more than compute a result, in order of
    execution."""
    waiting = [op for op in graph.ops if not _is_pure(op) or any(map(graph.is_output, op.outputs)) or not op.outputs]
    found = {*waiting}
    while waiting:
        producers = {op for op in map(graph.producer, waiting.pop().inputs) if op is not None} - found
        found |= producers
        waiting += producers
    return [op for op in graph.ops if op in found]


def _reads(graph: Graph) -> Iterator[tuple[Op, Op]]:
    """Yields the producer and the reader of each computed tensor that an op reads."""
    for op in live(graph):
        for tensor in op.inputs:
            producer = graph.producer(tensor)
            if producer is not None:
                yield producer, op


def _count(*names: str) -> Measure:
    return lambda graph: sum(op.name in names for op in live(graph))


def _read(*names: str) -> Measure:
    return lambda graph: sum(producer.name in names for producer, _ in _reads(graph))


def _is_layout(op: Op) -> bool:
    return op.name == "TRANSPOSE" or facts(op).reshapes


def _length(op: Op) -> int:
    """Returns the length that an op adds to a path of ops: 1, or 2 if it has a fused activation."""
    return 1 + bool(fused_activation(op))


def _distance(
    counts: Callable[[Op], bool], *, upstream: bool, length: Callable[[Op], int] = _length
) -> Callable[[Graph], int]:
    """Makes a measure: a number that becomes lower if some ops move upstream (or downstream), merge or disappear.

    These ops are the ones for which `counts` is true. The measure adds the lengths of all paths from them to the
    graph's inputs (or outputs), and the number of these paths.
    """

    def measure(graph: Graph) -> int:
        ops = live(graph)
        beside: dict[Op, list[Op]] = {op: [] for op in ops}
        for producer, reader in _reads(graph):
            beside[reader if upstream else producer].append(producer if upstream else reader)
        paths = dict.fromkeys(ops, (1, 0))
        for op in ops if upstream else reversed(ops):
            ends = sum(t is not None and not t.is_constant and graph.producer(t) is None for t in op.inputs)
            number = max(1, sum(paths[each][0] for each in beside[op]) + (ends if upstream else 0))
            total = sum(paths[each][1] + paths[each][0] * length(each) for each in beside[op])
            own = 0 if upstream else length(op) - 1  # the activation is downstream of the op
            paths[op] = number, total + number * max(own, 0)
        return sum(sum(paths[op]) for op in ops if counts(op))

    return measure


def _named(*names: str) -> Callable[[Op], bool]:
    return lambda op: op.name in names


def _layouts(graph: Graph) -> int:
    """Returns the distance of transposes and reshapes from the graph's outputs, which rules reduce. A transpose or
    reshape does not count if it moves the smaller of an op's operands.
    """

    def is_largest(op: Op) -> bool:
        reader = graph.sole_consumer(op.output)
        if reader is not None and _is_layout(reader):
            return is_largest(reader)
        others = [] if reader is None else [t for t in reader.inputs if t is not None and t is not op.output]
        return all(_size(other) <= _size(op.output) or other.is_constant for other in others)

    return _distance(
        lambda op: _is_layout(op) and is_largest(op), upstream=False, length=lambda op: 0 if _is_layout(op) else 1
    )(graph)


def _signs(graph: Graph) -> list[int]:
    """Returns two numbers. The first is the distance (`_distance`) between the graph's inputs and its sign ops, except
    sign ops whose operand already holds signs. The second is the number of fused activations."""
    distance = _distance(lambda op: op.name in SIGNS and not holds_signs(graph, op.input(0)), upstream=True)
    return [distance(graph), sum(bool(fused_activation(op)) for op in live(graph))]


def _size(tensor: Tensor) -> int:
    return math.prod(abs(size) for size in tensor.dims)


def _work_on_constants(graph: Graph) -> int:
    """Returns the number of ops that compute with constants only. Such an op counts once for each path to an op that
    also reads other tensors, or to an output."""
    lengths: dict[Tensor, int] = {}
    total = 0
    for op in live(graph):
        read = [tensor for tensor in op.inputs if tensor is not None]
        work = sum(lengths.get(tensor, 0) for tensor in read)
        if _is_pure(op) and all(tensor.is_constant or tensor in lengths for tensor in read):
            lengths.update(dict.fromkeys(op.outputs, 1 + work))
        else:
            total += work
    return total + sum(length for tensor, length in lengths.items() if graph.is_output(tensor))


def _sign_forms(graph: Graph, *, assume_nonzero: bool = False) -> int:
    floats = [op for op in live(graph) if len(op.outputs) == 1 and op.output.type == "FLOAT32"]
    return sum(
        op.name != LCE_DEQUANTIZE and find_sign(graph, op.output, assume_nonzero=assume_nonzero) is not None
        for op in floats
    )


def _ops_on_unpacked_signs(graph: Graph) -> int:
    return sum(
        (op.name in ("MAX_POOL_2D", "PADV2", "TRANSPOSE") or facts(op).reshapes or copies_pixels(op))
        and op.output.type == "FLOAT32"
        and (op.name == "PADV2" or holds_signs(graph, op.output))
        for op in live(graph)
    )


def _layers_of_few_values(graph: Graph) -> int:
    layers = (op for op in graph.ops if op.name in ("CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL"))
    return sum(_reads_few_values(graph, op) or op.output.type != "FLOAT32" for op in layers)


def _reads_few_values(graph: Graph, layer: Op) -> bool:
    source, zeros = without_zeros(graph, layer.input(0)) if layer.name == "CONV_2D" else (layer.input(0), np.zeros(1))
    return values_read(graph, layer, source, is_padded=bool(np.any(zeros))) is not None


def _scales_before_layers(graph: Graph) -> int:
    layers = (op for op in graph.ops if op.name in ("CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL", "TRANSPOSE_CONV"))
    return sum(len(found.scales) for op in layers if (found := scaled_input(graph, op)) is not None)


def _work(graph: Graph) -> int:
    return sum(1 + bool(fused_activation(op)) for op in live(graph))


def _forms_refused_by_larq(graph: Graph) -> int:
    total = 0
    for op in live(graph):
        if op.name == LCE_BCONV_2D:
            options = bconv_options(op)
            is_plain = is_float_bconv(op) and options.fused_activation_function == Activation.NONE
            total += 4 * (options.explicit_padding is not None) + (options.pads_zeros and not is_plain)
    return total


def _float_interface(graph: Graph) -> int:
    return sum(tensor.type == "FLOAT32" for tensor in (*graph.inputs, *graph.outputs))


def _unquantized(graph: Graph) -> int:
    return sum(all(reader.name != "QUANTIZE" for reader in graph.consumers(tensor)) for tensor in activations(graph))


def _constants(graph: Graph) -> int:
    return len({tensor for op in graph.ops for tensor in op.inputs if tensor is not None and tensor.is_constant})


def _weight_bits(graph: Graph) -> int:
    """Returns the number of bits of all weights. Packed ones count as if they had no scales."""
    bits = {"INT2": 2, "INT4": 4, "INT8": 8, "FLOAT16": 16}
    weights = {op.input(1) for op in live(graph) if op.name in ("FULLY_CONNECTED", *PACKABLE)}
    total = 0
    for each in weights:
        stored = graph.producer(each)
        source = each if stored is None else stored.input(0)
        rows = 1 if stored is None or stored.name != LITEBNN_UNPACK_WEIGHTS else len(stored.inputs) - 1
        total += rows * math.prod(source.shape) * bits.get(source.type, 32)
    return total


MEASURES: dict[str, Measure] = {
    "clamps in other forms": lambda graph: sum(
        find_clamp(graph, op) is not None or find_extreme(graph, op) is not None for op in live(graph)
    ),
    "constants": _constants,
    "distance of concatenations from inputs": _distance(_named("CONCATENATION"), upstream=True),
    "distance of layouts from inputs": lambda graph: [
        _distance(_named("TRANSPOSE"), upstream=True)(graph),
        _distance(_is_layout, upstream=True)(graph),
    ],
    "distance of layouts from outputs": _layouts,
    "distance of max pools from inputs": _distance(_named("MAX_POOL_2D"), upstream=True),
    "distance of moving ops from outputs": _distance(_named(*_MOVING), upstream=False),
    "distance of multiplications from inputs": _distance(_named("MUL"), upstream=True),
    "distance of quantizers from inputs": _distance(_named("QUANTIZE"), upstream=True),
    "distance of reshapes from inputs": _distance(_named("RESHAPE"), upstream=True),
    "distance of signs from inputs": _signs,
    "elements of sums": lambda graph: sum(math.prod(op.output.shape) for op in live(graph) if op.name == "ADD"),
    "float inputs and outputs": _float_interface,
    "float ops with an int8 form": lambda graph: sum(
        op.output.type == "FLOAT32" and facts(op).int8 is not None for op in live(graph) if op.outputs
    ),
    "forms that Larq's runtime refuses": _forms_refused_by_larq,
    "INT2 weights in blocks": lambda graph: sum(
        t is not None and t.type == "INT2" and t.details is not None for op in live(graph) for t in op.inputs
    ),
    "layers of few values": _layers_of_few_values,
    "layers of uneven weights": lambda graph: sum(
        op.name in ("CONV_2D", "FULLY_CONNECTED") and uneven_weights(graph, op) is not None for op in live(graph)
    ),
    "layers that are not binary": _count(*_LAYERS),
    "layers, then sums": lambda graph: [(_count(*_LAYERS)(graph), _count("ADD", "SUB")(graph))],
    "live ops and fused activations": _work,
    "ops": lambda graph: len(graph.ops),
    "ops on constants": _work_on_constants,
    "ops on unpacked signs": _ops_on_unpacked_signs,
    "padded values with an offset": lambda graph: sum(
        op.name == "CONV_2D" and padded_values(graph, op) is not None for op in live(graph)
    ),
    "reads of dequantized levels": _read("DEQUANTIZE"),
    "reads of padding": _read(*PADS, "MIRROR_PAD"),
    "reshapes to computed shapes": lambda graph: sum(
        op.name == "RESHAPE" and len(op.inputs) > 1 and not op.input(1).is_constant for op in live(graph)
    ),
    "scales before layers": _scales_before_layers,
    "selections by constants": _count("CONCATENATION", "GATHER_ND", "SELECT", "SELECT_V2"),
    "sign forms": _sign_forms,
    "sign forms with a third value": lambda graph: _sign_forms(graph, assume_nonzero=True) - _sign_forms(graph),
    "space-to-batch pairs": _count("BATCH_TO_SPACE_ND"),
    "thresholds": _count(THRESHOLD),
    "transposed convolutions": _count("TRANSPOSE_CONV"),
    "uint8 tensors": lambda graph: sum(tensor.type == "UINT8" for tensor in graph.all_tensors()),
    "unquantized activations": _unquantized,
    "weight bits": _weight_bits,
}


def measured(rule: Rule) -> Rule:
    """Wraps a rule, so that it fails if it changes a graph without lowering its measure."""
    name = vars(rule)["lowers"]

    @functools.wraps(rule)
    def run(graph: Graph, notes: Notes) -> bool:
        before = MEASURES[name](graph)
        changed = rule(graph, notes)
        assert not changed or MEASURES[name](graph) < before, f"{rule.__name__} does not lower: {name}"
        return changed

    return run
