"""Lowers ops to the C functions that compute them. `LOWERINGS` is the only list of the ops that an export can hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from litebnn.contract import LCE_BCONV_2D, LCE_BMAXPOOL_2D, LCE_DEQUANTIZE, LCE_QUANTIZE
from litebnn.errors import ConversionError, printable
from litebnn.graph import Op
from litebnn.micro.lowering import bits, elementwise, moves, reductions, windows
from litebnn.micro.program import C_TYPES, Context, Lowered, refuse

Lowering = Callable[[Context, Op], Lowered]

LOWERINGS: Mapping[str, Lowering] = {
    LCE_BCONV_2D: bits.lce_bconv_2d,
    LCE_BMAXPOOL_2D: bits.lce_bmaxpool_2d,
    LCE_DEQUANTIZE: bits.lce_dequantize,
    LCE_QUANTIZE: bits.lce_quantize,
    "CONV_2D": windows.conv_2d,
    "DEPTHWISE_CONV_2D": windows.depthwise_conv_2d,
    "FULLY_CONNECTED": windows.fully_connected,
    **dict.fromkeys(("MAX_POOL_2D", "AVERAGE_POOL_2D"), windows.pool_2d),
    **dict.fromkeys(("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "PRELU"), elementwise.binary),
    **dict.fromkeys(elementwise.UNARY, elementwise.unary),
    "QUANTIZE": elementwise.quantize,
    "DEQUANTIZE": elementwise.dequantize,
    "SOFTMAX": elementwise.softmax,
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"), reductions.reduction),
    "CONCATENATION": moves.concatenation,
    **dict.fromkeys(("PAD", "PADV2"), moves.pad),
    "TRANSPOSE": moves.transpose,
    "SLICE": moves.slice_,
    "STRIDED_SLICE": moves.strided_slice,
    "GATHER": moves.gather,
    **dict.fromkeys(("SPLIT", "SPLIT_V"), moves.split),
    "PACK": moves.stack,
}


def lower(context: Context, op: Op) -> Lowered:
    """Returns the calls of C functions that compute an op.

    Raises:
        ConversionError: the op cannot be exported; the message names its index, kind and layer.
    """
    try:
        if op.name not in LOWERINGS:
            raise refuse(f"there is no C for it, expected one of {', '.join([*LOWERINGS, *moves.RESHAPES])}")
        for tensor in (*op.inputs, *op.outputs):
            if tensor is not None and not tensor.is_constant and tensor.type not in C_TYPES:
                raise refuse(f'"{tensor.name}" is {tensor.type}, expected {", ".join(C_TYPES)}')
        return LOWERINGS[op.name](context, op)
    except ConversionError as error:
        raise ConversionError(printable(f"{where(context, op)}: {error}")) from None


def where(context: Context, op: Op) -> str:
    """An op's index, kind and layer, for messages."""
    layer = op.outputs[0].name if op.outputs else ""
    return f'op {context.numbers[op]} ({op.name}, layer "{layer}")'
