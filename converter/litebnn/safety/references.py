"""Checks all references to tensors and subgraphs except the inputs and outputs of ops."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from litebnn.errors import ConversionError
from litebnn.graph.graph import Graph, Op, QuantizationDetails, Tensor
from litebnn.safety.fields import FIELDS, fields_that_hold

_BLOCKWISE = "BlockwiseQuantization"
_BLOCK_TYPES, _SCALE_TYPES, _POINT_TYPES = ("INT4", "INT2"), ("FLOAT16",), ("INT8", "INT16", "INT32", "INT64")
# The ops with an input whose scales may be in another tensor, and the index of this input. For any other input,
# runtimes would misread such scales.
_READ_DETAILS = {"FULLY_CONNECTED": 1, "EMBEDDING_LOOKUP": 1}
_READ_SPARSE = {"FULLY_CONNECTED": 1, "DENSIFY": 0}
# Ops whose first operand selects the subgraph to run. Their other operands are the inputs of this subgraph.
_BRANCHES = ("IF", "STABLEHLO_CASE")
_LOOPS = ("WHILE", "STABLEHLO_WHILE")
_CALLS = ("CALL", "CALL_ONCE", "STABLEHLO_COMPOSITE")
# The ops whose operands may be left out. Runtimes read all operands of any other op, without checking that they exist.
_LEAVE_OUT = {
    *("CONV_2D", "CONV_3D", "CONV_3D_TRANSPOSE", "CUSTOM", "DELEGATE", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"),
    *("BIDIRECTIONAL_SEQUENCE_LSTM", "LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "SVDF", "TRANSPOSE_CONV"),
    "STABLEHLO_COMPOSITE",
    *("BIDIRECTIONAL_SEQUENCE_RNN", "RNN", "UNIDIRECTIONAL_SEQUENCE_RNN", "LSH_PROJECTION", "STABLEHLO_CUSTOM_CALL"),
}


def check_details(graph: Graph) -> None:
    """Checks the tensors that hold the scales of other tensors.

    Raises:
        ConversionError: a reference is invalid; the message names the tensor and the one that holds its scales.
    """
    for tensor in graph.outputs:
        if tensor.is_sparse or tensor.details is not None:
            raise ConversionError(f'"{tensor.name}", an output of the graph, is sparse or quantized by other tensors')
    for tensor in graph.tensors:
        if tensor.details is None:
            continue
        table = tensor.details.options.table
        of_blocks = _blocks(tensor, tensor.details) if table == _BLOCKWISE else ()
        for mistake in chain(_ranges(tensor.details), of_blocks):
            raise ConversionError(f'"{tensor.name}": {table}: {mistake}')


def check_operands(what: str, op: Op) -> None:
    """Refuses operands that an op does not support: omitted ones, sparse ones, and ones whose scales are other
    tensors.

    Raises:
        ConversionError: an operand is not supported; the message names the op and the tensor.
    """
    name = op.code.builtin
    if name not in _LEAVE_OUT and None in op.inputs:
        raise ConversionError(f"{what}: input {op.inputs.index(None)} is left out, expected a tensor")
    if name == "DEPTHWISE_CONV_2D" and len(op.inputs) < 3:
        raise ConversionError(f"{what}: no place for a bias among its inputs, which runtimes read all the same")
    for place, tensor in enumerate(op.inputs if name != "CUSTOM" else ()):
        if tensor is not None and tensor.is_sparse and _READ_SPARSE.get(name) != place:
            raise ConversionError(f'{what}: "{tensor.name}" is sparse, which no runtime reads there')
        if tensor is None or tensor.details is None:
            continue
        table = tensor.details.options.table
        if _READ_DETAILS.get(name) != place or getattr(op.options, "weights_format", 0) != 0:
            raise ConversionError(f'{what}: "{tensor.name}" has {table}, which no runtime reads there')
        data, result = op.inputs[0], op.outputs[0] if op.outputs else None
        if (
            name == "FULLY_CONNECTED"
            and table == _BLOCKWISE
            and {data and data.type, result and result.type} != {"FLOAT32"}
        ):
            raise ConversionError(f'{what}: "{tensor.name}" has {table}, expected FLOAT32 inputs and outputs')


def _ranges(details: QuantizationDetails) -> Iterator[str]:
    for key, field in FIELDS[details.options.table].items():
        mistake = field.mistake(getattr(details.options, key, None))
        if mistake:
            yield f"{key} {mistake}"


def _blocks(tensor: Tensor, details: QuantizationDetails) -> Iterator[str]:
    """Checks that a matrix that is quantized in blocks has a scale for each block of each row, because runtimes read
    that many scales.
    """
    size = details.options.block_size
    if tensor.type not in _BLOCK_TYPES or not tensor.is_constant or len(tensor.shape) != 2:
        yield f"it is {tensor.type} {list(tensor.shape)}, expected a constant matrix of {' or '.join(_BLOCK_TYPES)}"
        return
    if tensor.shape[1] % size:
        yield f"rows of {tensor.shape[1]} are no blocks of {size}"
    if details.axis not in (0, 1):
        yield f"quantized_dimension is {details.axis}, expected 0 or 1"
    count = math.prod(tensor.shape) // size
    for name, types in (("scales", _SCALE_TYPES), ("zero_points", _POINT_TYPES)):
        named = details.tensors[name]
        if named is None:
            continue
        if named.type not in types or named.array is None or named.array.size != count or named.details is not None:
            yield (
                f'{name} "{named.name}" is {named.type} {list(named.shape)}, '
                f"expected a constant of {count} {' or '.join(types)}"
            )


def check_subgraphs(graphs: list[Graph]) -> None:
    """Checks the subgraphs that ops run.

    Raises:
        ConversionError: a subgraph is invalid; the message names the op.
    """
    callees: dict[int, list[int]] = {}
    for number, graph in enumerate(graphs):
        callees[number] = []
        for index, op in enumerate(graph.ops):
            what = f"op {index} ({op.name})"
            for key, called in _called(op):
                if not 0 <= called < len(graphs):
                    raise ConversionError(f"{what}: {key} is {called}, expected 0 to {len(graphs) - 1}")
                callees[number].append(called)
                for mistake in _border_mismatches(op, key, graphs[called]):
                    raise ConversionError(f"{what}: {key} is {called}, a subgraph {mistake}")
            # For STABLEHLO_CASE, the kernel in LiteRT 2.3.0 reads as many branches as the file has subgraphs besides
            # the first.
            if op.code.builtin == "STABLEHLO_CASE" and len([*_called(op)]) != len(graphs) - 1:
                raise ConversionError(
                    f"{what}: {len([*_called(op)])} branches, expected all {len(graphs) - 1} subgraphs"
                )
    _check_order(callees)


def graphs_of_loops(graphs: list[Graph]) -> list[Graph]:
    """The subgraphs that are run only by a WHILE. The outputs of such a subgraph may grow in each step, because
    WHILE resizes them.
    """
    callers: dict[int, set[str]] = {}
    for op in (op for graph in graphs for op in graph.ops):
        for _, called in _called(op):
            callers.setdefault(called, set()).add(op.name)
    return [graphs[called] for called, names in callers.items() if names == {"WHILE"}]


def _called(op: Op) -> Iterator[tuple[str, int]]:
    for key in fields_that_hold(op.options.table, "subgraphs"):
        value = getattr(op.options, key, None)
        for called in () if value is None else np.ravel(value):
            yield key, int(called)


def _check_order(callees: dict[int, list[int]]) -> None:
    """Refuses subgraphs that run themselves. Runtimes would never finish preparing them."""
    done: set[int] = set()
    for start in callees:
        path: list[tuple[int, Iterator[int]]] = [(start, iter(callees[start]))]
        on_path = {start}
        while path:
            number, left = path[-1]
            called = next((each for each in left if each not in done), None)
            if called is None:
                path.pop()
                on_path.discard(number)
                done.add(number)
            elif called in on_path:
                raise ConversionError(f"subgraph {called} runs itself")
            else:
                path.append((called, iter(callees[called])))
                on_path.add(called)


def _border_mismatches(op: Op, key: str, graph: Graph) -> Iterator[str]:
    """Checks types and shapes of a subgraph's inputs and outputs, because runtimes copy operands and outputs without a
    check."""
    name = op.code.builtin
    for tensor in graph.outputs:
        if not (graph.producer(tensor) or tensor in graph.inputs or tensor.is_constant or tensor.is_variable):
            yield f'whose output "{tensor.name}" nothing computes'
    if name in (*_BRANCHES, *_LOOPS, *_CALLS):
        operands = op.inputs[1:] if name in _BRANCHES else op.inputs
        yield from _match("inputs", graph.inputs, operands)
        for tensor, operand in zip(graph.inputs, operands, strict=False):
            if operand is None and graph.consumers(tensor):
                yield f'that reads its input "{tensor.name}", which is left out'
        if key == "cond_subgraph_index":
            if [tensor.type for tensor in graph.outputs] != ["BOOL"]:
                yield f"with outputs {_types(graph.outputs)}, expected BOOL"
        else:
            yield from _match("outputs", graph.outputs, op.outputs)


def _match(what: str, own: list[Tensor], given: Iterable[Tensor | None]) -> Iterator[str]:
    given = [*given]
    # A STABLEHLO_COMPOSITE may omit operands.
    differs = len(own) != len(given) or any(
        other is not None and tensor.type != other.type for tensor, other in zip(own, given, strict=True)
    )
    if differs:
        yield f"with {what} {_types(own)}, expected {_types(given)}"


def _types(tensors: Iterable[Tensor | None]) -> str:
    return ", ".join("none" if tensor is None else tensor.type for tensor in tensors) or "none"
