"""Checks operands that the kernels of builtin ops do not check themselves, although wrong operands can crash the
process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from litebnn.graph.graph import NUMPY_TYPES, Op

# The ops whose results must have the same type as their first operand, or as all operands. The kernels of these ops do
# not check the type.
_COPY_FIRST = """AVERAGE_POOL_2D BATCH_TO_SPACE_ND BROADCAST_TO CUMSUM DEPTH_TO_SPACE DILATE DYNAMIC_UPDATE_SLICE
    EXPAND_DIMS GATHER GATHER_ND L2_POOL_2D MATRIX_DIAG MATRIX_SET_DIAG MAX_POOL_2D MEAN MIRROR_PAD PAD PADV2
    REDUCE_MAX REDUCE_MIN REDUCE_PROD REDUCE_WINDOW RESHAPE REVERSE_SEQUENCE REVERSE_V2 SLICE SPACE_TO_BATCH_ND
    SPACE_TO_DEPTH SPLIT_V SQUEEZE STABLEHLO_GATHER STABLEHLO_PAD STRIDED_SLICE SUM TILE TRANSPOSE UNPACK"""
_COMPUTE_FIRST = """ABS CEIL COS ELU EXP FAKE_QUANT FLOOR GELU HARD_SWISH L2_NORMALIZATION LEAKY_RELU
    LOCAL_RESPONSE_NORMALIZATION LOG LOGICAL_NOT LOGISTIC LOG_SOFTMAX NEG RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1
    RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR ROUND RSQRT SEGMENT_SUM SIGN SIN SQRT SQUARE STABLEHLO_CBRT TANH
    UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_SUM ZEROS_LIKE"""
_COMPUTE_ALL = """ADD ADD_N ATAN2 BITWISE_XOR CONCATENATION DIV FLOOR_DIV FLOOR_MOD LOGICAL_AND LOGICAL_OR MAXIMUM
    MINIMUM PACK POW PRELU RIGHT_SHIFT SQUARED_DIFFERENCE STABLEHLO_ADD STABLEHLO_AND STABLEHLO_MAXIMUM
    STABLEHLO_MINIMUM STABLEHLO_MULTIPLY STABLEHLO_SHIFT_LEFT SUB"""
_COPIED: dict[str, slice] = {
    **dict.fromkeys((*_COPY_FIRST.split(), *_COMPUTE_FIRST.split()), slice(0, 1)),
    **dict.fromkeys(_COMPUTE_ALL.split(), slice(None)),
    **dict.fromkeys(("SELECT", "SELECT_V2"), slice(1, 3)),
    **dict.fromkeys(("FILL", "SCATTER_ND", "SPLIT"), slice(1, 2)),
    "ONE_HOT": slice(2, 4),
    "STABLEHLO_SCATTER": slice(0, 3, 2),
}
_RECURRENT = """BIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_RNN LSTM RNN SVDF UNIDIRECTIONAL_SEQUENCE_LSTM
    UNIDIRECTIONAL_SEQUENCE_RNN"""
# For each op, the index of an input. If this input is FLOAT32, the results and the op's state must be FLOAT32 too.
_LAYERS = "BATCH_MATMUL CONV_2D CONV_3D DEPTHWISE_CONV_2D FULLY_CONNECTED MUL SOFTMAX"
_COMPUTED = {
    **dict.fromkeys((*_RECURRENT.split(), *_LAYERS.split()), 0),
    "EMBEDDING_LOOKUP": 1,
    **dict.fromkeys(("CONV_3D_TRANSPOSE", "TRANSPOSE_CONV"), 2),
}
# For each op, the types that its results may have, whatever its operands are.
_COMPARISONS = "EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL NOT_EQUAL REDUCE_ALL REDUCE_ANY"
_RESULTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_COMPARISONS.split(), ("BOOL",)),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN", "SHAPE"), ("INT32", "INT64")),
    "DEQUANTIZE": ("FLOAT32",),
    "QUANTIZE": ("INT4", "INT8", "INT16", "INT32", "UINT8"),
}
# For ops on resources and ops that draw random numbers, the allowed numbers of inputs and outputs.
_COUNTS = {
    "ASSIGN_VARIABLE": (2, 0),
    "CALL_ONCE": (0, 0),
    "HASHTABLE": (0, 1),
    "HASHTABLE_FIND": (3, 1),
    "HASHTABLE_IMPORT": (3, 0),
    "HASHTABLE_SIZE": (1, 1),
    "MULTINOMIAL": (2, 1),
    "RANDOM_STANDARD_NORMAL": (1, 1),
    "RANDOM_UNIFORM": (1, 1),
    "READ_VARIABLE": (1, 1),
    "VAR_HANDLE": (0, 1),
}


def kernel_mistakes(op: Op) -> Iterator[str]:
    """Yields the reasons why a kernel would read or write out of bounds, or abort."""
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
    for result in op.outputs:
        if result.type not in _RESULTS.get(op.code.builtin, (result.type,)):
            yield f'"{result.name}" is {result.type}, expected {" or ".join(_RESULTS[op.code.builtin])}'
    place = _COMPUTED.get(op.code.builtin, len(op.inputs))
    data = op.optional(place)
    if data is not None and data.type == "FLOAT32":
        state = [tensor for tensor in op.inputs if tensor is not None and tensor.is_variable]
        for tensor in (*op.outputs, *state):
            if tensor.type != "FLOAT32":
                yield f'"{tensor.name}" is {tensor.type}, expected FLOAT32 as "{data.name}" is'


_LSTM_TYPES = ("FLOAT32", "INT8", "INT16", "UINT8")
# For each kind of LSTM, three input indices: those of the input gate's weights, recurrent weights and bias. An op omits
# all three inputs or none. A bidirectional LSTM has two such triples.
_GATES = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": ((1, 5, 12), (18, 22, 29)),
    "LSTM": ((1, 5, 12),),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": ((1, 5, 12),),
}


def _lstm(op: Op) -> Iterator[str]:
    data, name = op.input(0), op.code.builtin
    if name != "LSTM" and len(data.shape) > 3:
        yield f'"{data.name}" has {len(data.shape)} dimensions, expected 3 at most'
    if data.type not in _LSTM_TYPES:
        yield f'"{data.name}" is {data.type}, expected {" or ".join(_LSTM_TYPES)}'
    for gate in _GATES[name]:
        missing = [place for place in gate if op.optional(place) is None]
        if gate[-1] < len(op.inputs) and 0 < len(missing) < len(gate):
            yield f"input {missing[0]} of the input gate is left out, and others of it are not"


def _elements(op: Op) -> Iterator[str]:
    if 0 in op.input(0).dims:
        yield f'"{op.input(0).name}" has no elements'


def _densify(op: Op) -> Iterator[str]:
    if op.input(0).shape != op.output.shape:
        yield f'"{op.input(0).name}" has shape {list(op.input(0).shape)} and "{op.output.name}" {list(op.output.shape)}'


def _layer(filters: int, axis: int, bias: int) -> Callable[[Op], Iterator[str]]:
    """Makes the check of a layer's bias. XNNPACK reads one number for each of the filter's output channels."""

    def check(op: Op) -> Iterator[str]:
        weights, offsets = op.optional(filters), op.optional(bias)
        if weights is None or offsets is None or len(weights.shape) <= axis or -1 in offsets.dims:
            return
        if math.prod(offsets.dims) != weights.shape[axis]:
            yield f'"{offsets.name}" has shape {list(offsets.dims)}, expected [{weights.shape[axis]}]'

    return check


def _broadcast_shapes(op: Op) -> Iterator[str]:
    shapes = [None if tensor is None or tensor.array is None else tensor.array.reshape(-1) for tensor in op.inputs]
    known = [shape[::-1].tolist() for shape in shapes if shape is not None]
    if any(len({size for size in sizes if size != 1}) > 1 for sizes in zip(*known, strict=False)):
        yield f"shapes {[shape[::-1] for shape in known]} do not fit each other"


def _dense(op: Op) -> Iterator[str]:
    """Checks shapes of a FULLY_CONNECTED. Runtimes check them only if the weights are constant and not sparse."""
    yield from _layer(1, 0, 2)(op)
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


def _windows(op: Op) -> Iterator[str]:
    """Checks that sizes, strides and dilations of windows are positive, because the kernel divides by them."""
    for tensor in op.inputs[2:]:
        array = None if tensor is None else tensor.array
        if tensor is not None and array is not None and array.size and array.min() < 1:
            yield f'"{tensor.name}" holds {array.min()}, expected 1 at least'


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
    **dict.fromkeys(_GATES, _lstm),
    **dict.fromkeys(("LOG_SOFTMAX", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "SKIP_GRAM", "SOFTMAX"), _elements),
    "BROADCAST_ARGS": _broadcast_shapes,
    "CONV_2D": _layer(1, 0, 2),
    "TRANSPOSE_CONV": _layer(1, 0, 3),
    "CONV_3D": _layer(1, 4, 2),
    "DEPTHWISE_CONV_2D": _layer(1, 3, 2),
    "DENSIFY": _densify,
    "EMBEDDING_LOOKUP_SPARSE": _frees_twice,
    "FULLY_CONNECTED": _dense,
    "MATRIX_SET_DIAG": _set_diagonal,
    "REDUCE_WINDOW": _windows,
    "REVERSE_SEQUENCE": _reversed_parts,
    "STABLEHLO_CASE": _case,
    "STABLEHLO_SHIFT_LEFT": _same_shape,
}
