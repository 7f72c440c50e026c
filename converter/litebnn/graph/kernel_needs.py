"""Operands that kernels of builtin ops do not check, and with which they end the runtime's process."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from litebnn.graph.graph import NUMPY_TYPES, Op

# Results of these have the type of the operands that they copy, byte by byte.
_COPY_FIRST = """AVERAGE_POOL_2D BATCH_TO_SPACE_ND BROADCAST_TO CUMSUM DEPTH_TO_SPACE DILATE DYNAMIC_UPDATE_SLICE
    EXPAND_DIMS GATHER GATHER_ND L2_POOL_2D MATRIX_DIAG MATRIX_SET_DIAG MAX_POOL_2D MEAN MIRROR_PAD PAD PADV2
    REDUCE_MAX REDUCE_MIN REDUCE_PROD REDUCE_WINDOW RESHAPE REVERSE_SEQUENCE REVERSE_V2 SLICE SPACE_TO_BATCH_ND
    SPACE_TO_DEPTH SPLIT_V SQUEEZE STABLEHLO_GATHER STABLEHLO_PAD STRIDED_SLICE SUM TILE TRANSPOSE UNPACK"""
_COPIED: dict[str, slice] = {
    **dict.fromkeys(_COPY_FIRST.split(), slice(0, 1)),
    **dict.fromkeys(("CONCATENATION", "PACK"), slice(None)),
    **dict.fromkeys(("SELECT", "SELECT_V2"), slice(1, 3)),
    "SPLIT": slice(1, 2),
    "STABLEHLO_SCATTER": slice(0, 3, 2),
}
_RECURRENT = """BIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_RNN LSTM RNN SVDF UNIDIRECTIONAL_SEQUENCE_LSTM
    UNIDIRECTIONAL_SEQUENCE_RNN"""
# If this input is FLOAT32, so are the results and the state.
_COMPUTED = {**dict.fromkeys(_RECURRENT.split(), 0), "BATCH_MATMUL": 0, "EMBEDDING_LOOKUP": 1}
# The numbers of inputs and outputs of ops on resources.
_COUNTS = {
    "ASSIGN_VARIABLE": (2, 0),
    "CALL_ONCE": (0, 0),
    "HASHTABLE": (0, 1),
    "HASHTABLE_FIND": (3, 1),
    "HASHTABLE_IMPORT": (3, 0),
    "HASHTABLE_SIZE": (1, 1),
    "READ_VARIABLE": (1, 1),
    "VAR_HANDLE": (0, 1),
}


def kernel_mistakes(op: Op) -> Iterator[str]:
    """Why a kernel would read or write out of bounds, or abort."""
    name = op.code.builtin
    counts = len(op.inputs), len(op.outputs)
    if counts != _COUNTS.get(name, counts):
        inputs, outputs = _COUNTS[name]
        yield f"{counts[0]} inputs and {counts[1]} outputs, expected {inputs} and {outputs}"
    for tensor in op.outputs:
        if tensor.is_variable:
            yield f'it writes "{tensor.name}", a variable'
    for variable in op.inputs:
        if variable is not None and variable.is_variable and variable.type not in NUMPY_TYPES:
            yield f'"{variable.name}" is a variable of {variable.type}, expected numbers'
    yield from _types(op)
    check = _CHECKS.get(name)
    if check is not None and op.outputs and op.inputs and op.inputs[0] is not None:
        yield from check(op)


def _types(op: Op) -> Iterator[str]:
    for source in op.inputs[_COPIED.get(op.code.builtin, slice(0))]:
        for result in op.outputs:
            if source is not None and source.type != result.type:
                yield f'"{source.name}" is {source.type} and "{result.name}" {result.type}, expected the same'
    place = _COMPUTED.get(op.code.builtin, len(op.inputs))
    data = op.optional(place)
    if data is not None and data.type == "FLOAT32":
        state = [tensor for tensor in op.inputs if tensor is not None and tensor.is_variable]
        for tensor in (*op.outputs, *state):
            if tensor.type != "FLOAT32":
                yield f'"{tensor.name}" is {tensor.type}, expected FLOAT32 as "{data.name}" is'


def _sequence(op: Op) -> Iterator[str]:
    data = op.input(0)
    if len(data.shape) > 3:
        yield f'"{data.name}" has {len(data.shape)} dimensions, expected 3 at most'


def _resize(op: Op) -> Iterator[str]:
    if 0 in op.input(0).dims:
        yield f'"{op.input(0).name}" has no elements'


def _densify(op: Op) -> Iterator[str]:
    if op.input(0).shape != op.output.shape:
        yield f'"{op.input(0).name}" has shape {list(op.input(0).shape)} and "{op.output.name}" {list(op.output.shape)}'


def _dense(op: Op) -> Iterator[str]:
    """Runtimes check the shapes only if the weights are dense constants."""
    data, weights, result = op.input(0), op.optional(1), op.output
    if (
        weights is None
        or (weights.is_constant and not weights.is_sparse)
        or len(weights.shape) != 2
        or min((*data.dims, *result.dims), default=0) < 0
    ):
        return
    units, depth = weights.shape
    if math.prod(data.dims) * units != math.prod(result.dims) * depth:
        yield (
            f'"{data.name}", weights and "{result.name}" have shapes {list(data.dims)}, {list(weights.shape)} and '
            f"{list(result.dims)}"
        )


def _set_diagonal(op: Op) -> Iterator[str]:
    matrix, diagonal = op.input(0).dims, op.optional(1)
    if diagonal is None or min((*matrix, *diagonal.dims), default=0) < 0:
        return
    expected = (*matrix[:-2], min(matrix[-2:], default=0))
    if diagonal.dims != expected:
        yield f'"{diagonal.name}" has shape {list(diagonal.dims)}, expected {list(expected)}'


def _same_shape(op: Op) -> Iterator[str]:
    shapes = [list(tensor.dims) for tensor in (*op.inputs, op.output) if tensor is not None]
    if any(-1 not in shape and shape != shapes[0] for shape in shapes) and -1 not in shapes[0]:
        yield f"operands and result have shapes {shapes}, expected the same"


def _reversed_parts(op: Op) -> Iterator[str]:
    data, lengths, axis = op.input(0).dims, op.optional(1), int(getattr(op.options, "seq_dim", 0))
    array = None if lengths is None else lengths.array
    if array is None or not array.size or axis >= len(data) or data[axis] < 0:
        return
    if not 0 <= array.min() <= array.max() <= data[axis]:
        yield f"lengths from {array.min()} to {array.max()}, expected 0 to {data[axis]}"


def _case(op: Op) -> Iterator[str]:
    branches = np.size(getattr(op.options, "branch_subgraph_indices", ()))
    if branches < 2:
        yield f"{branches} branches, expected 2 at least"


def _frees_twice(op: Op) -> Iterator[str]:
    yield "its kernel frees memory twice in CompiledModel, which ends the process"


_CHECKS: dict[str, Callable[[Op], Iterator[str]]] = {
    **dict.fromkeys(("BIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM"), _sequence),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), _resize),
    "DENSIFY": _densify,
    "EMBEDDING_LOOKUP_SPARSE": _frees_twice,
    "FULLY_CONNECTED": _dense,
    "MATRIX_SET_DIAG": _set_diagonal,
    "REVERSE_SEQUENCE": _reversed_parts,
    "STABLEHLO_CASE": _case,
    "STABLEHLO_SHIFT_LEFT": _same_shape,
}
