"""Computes the shapes of ops' outputs, as far as they follow from shapes, options and constants.

LiteRT's CompiledModel allocates buffers for outputs by the shapes in the file. If XNNPACK runs a part of the graph,
nothing checks these sizes, and a larger output overflows its buffer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from litebnn.contract import LCE_BCONV_2D, LCE_BMAXPOOL_2D, LCE_DEQUANTIZE, LCE_QUANTIZE, LITEBNN_UNPACK_WEIGHTS
from litebnn.errors import ConversionError
from litebnn.graph.graph import Graph, Tensor
from litebnn.safety.shapes import layers, moves
from litebnn.safety.shapes.call import Call, Shape

_SAME = """ABS BUCKETIZE CAST CEIL COMPLEX_ABS COS CUMSUM DENSIFY DEQUANTIZE DYNAMIC_UPDATE_SLICE ELU EXP FAKE_QUANT
    FLOOR GELU HARD_SWISH IMAG L2_NORMALIZATION LEAKY_RELU LOCAL_RESPONSE_NORMALIZATION LOG LOGICAL_NOT LOGISTIC
    LOG_SOFTMAX MATRIX_SET_DIAG NEG QUANTIZE REAL RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 REVERSE_SEQUENCE REVERSE_V2
    ROUND RSQRT SIGN SIN SOFTMAX SQRT SQUARE STABLEHLO_CBRT STABLEHLO_SHIFT_LEFT TANH ZEROS_LIKE"""
_BROADCAST = """ADD ATAN2 BITWISE_XOR DIV EQUAL FLOOR_DIV FLOOR_MOD GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND
    LOGICAL_OR MAXIMUM MINIMUM MUL NOT_EQUAL POW PRELU RIGHT_SHIFT SELECT_V2 SQUARED_DIFFERENCE STABLEHLO_ADD
    STABLEHLO_AND STABLEHLO_MAXIMUM STABLEHLO_MINIMUM STABLEHLO_MULTIPLY SUB"""
_BY_FIRST = "CONV_3D_TRANSPOSE FILL RANDOM_STANDARD_NORMAL RANDOM_UNIFORM TRANSPOSE_CONV"
_REDUCE = "MEAN REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD SUM"
# For each op, a function that computes the shape of its output, or the shapes of its outputs.
_RULES: dict[str, Callable[[Call], Shape | list[Shape]]] = {
    **dict.fromkeys((*_SAME.split(), "ADD_N"), moves.first),
    **dict.fromkeys(_BROADCAST.split(), moves.broadcast),
    **dict.fromkeys(_REDUCE.split(), moves.reduced),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), moves.best),
    **dict.fromkeys(("AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"), layers.pool),
    **dict.fromkeys(("MIRROR_PAD", "PAD", "PADV2"), moves.padded),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), moves.resize),
    **dict.fromkeys(_BY_FIRST.split(), moves.filled),
    **dict.fromkeys(("RNN", "UNIDIRECTIONAL_SEQUENCE_RNN"), layers.recurrent),
    **dict.fromkeys((f"UNSORTED_SEGMENT_{name}" for name in ("MAX", "MIN", "PROD", "SUM")), moves.segments),
    **dict.fromkeys(("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM"), layers.long_recurrent),
    "BATCH_TO_SPACE_ND": moves.from_batch,
    "BATCH_MATMUL": layers.matmul,
    "BROADCAST_TO": moves.broadcast_to,
    "CONCATENATION": moves.concatenate,
    "CONV_2D": layers.conv,
    "CONV_3D": layers.conv_3d,
    "DEPTHWISE_CONV_2D": layers.depthwise,
    "DEPTH_TO_SPACE": moves.to_space,
    "EMBEDDING_LOOKUP": moves.lookup,
    "EXPAND_DIMS": moves.expanded,
    "FULLY_CONNECTED": layers.dense,
    "GATHER": moves.gather,
    "GATHER_ND": moves.gather_nd,
    LCE_BCONV_2D: layers.bconv,
    LCE_BMAXPOOL_2D: layers.bmaxpool,
    LCE_DEQUANTIZE: layers.unpack_bits,
    LCE_QUANTIZE: layers.pack_bits,
    LITEBNN_UNPACK_WEIGHTS: layers.unpack_weights,
    "MATRIX_DIAG": moves.diagonal,
    "ONE_HOT": moves.one_hot,
    "PACK": moves.stack,
    "RESHAPE": moves.reshape,
    "SCATTER_ND": moves.scattered,
    "SELECT": moves.second,
    "SHAPE": moves.shape_of,
    "SLICE": moves.sliced,
    "SPACE_TO_BATCH_ND": moves.to_batch,
    "SPACE_TO_DEPTH": moves.to_depth,
    "SPLIT": moves.split,
    "SPLIT_V": moves.split_sizes,
    "SQUEEZE": moves.squeeze,
    "STRIDED_SLICE": moves.strided_slice,
    "SVDF": layers.filter_memory,
    "TILE": moves.tiled,
    "TOPK_V2": moves.largest,
    "TRANSPOSE": moves.transpose,
    "UNPACK": moves.unstack,
}


def outgrown_outputs(graph: Graph) -> Iterator[tuple[Tensor, Shape]]:
    """The outputs of the graph whose computed shape is larger than their shape in the file, each with its computed
    shape."""
    shapes: dict[Tensor, Shape] = {}
    for op in graph.ops:
        rule = _RULES.get(op.name)
        if rule is None or not op.outputs:
            continue
        try:
            computed = rule(Call(op, shapes))
        except (ArithmeticError, AttributeError, ConversionError, LookupError, TypeError, ValueError):
            continue  # runtimes refuse the op, or its shape is known only at run time
        shapes.update(zip(op.outputs, computed if isinstance(computed, list) else [computed], strict=False))
    for tensor in graph.outputs:
        if tensor in shapes and math.prod(shapes[tensor]) > math.prod(tensor.shape):
            yield tensor, shapes[tensor]


def check_outputs(graph: Graph, *, is_fixed: bool = False) -> None:
    """Refuses a graph with outputs that are larger than their shapes in the file.

    Args:
        is_fixed: True to check only outputs whose dimensions in the file are all known. The other outputs may be
            larger, because interpreters compute their sizes themselves.

    Raises:
        ConversionError: an output is larger; the message names the op and the output.
    """
    for tensor, shape in outgrown_outputs(graph):
        if not is_fixed or tensor.shape_signature is None:
            index, op = next((index, op) for index, op in enumerate(graph.ops) if tensor in op.outputs)
            raise ConversionError(
                f'op {index} ({op.name}): "{tensor.name}", an output of the graph, has shape {list(tensor.shape)}, '
                f"and {list(shape)} is computed"
            )
