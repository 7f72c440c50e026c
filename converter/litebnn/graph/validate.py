"""What the rewrites take for granted of ops and their order, checked once when a file is read."""

from __future__ import annotations

from dataclasses import dataclass

from litebnn.errors import ConversionError
from litebnn.graph.graph import Graph, Op, Tensor


@dataclass(frozen=True)
class _Form:
    least: int  # inputs that must be there
    most: int
    options: str = ""  # the schema's table, where the op cannot do without


_FORMS: dict[str, _Form] = {
    "CONV_2D": _Form(2, 3, "Conv2DOptions"),
    "DEPTHWISE_CONV_2D": _Form(2, 3, "DepthwiseConv2DOptions"),
    "FULLY_CONNECTED": _Form(2, 3, "FullyConnectedOptions"),
    "CONV_3D": _Form(2, 3),
    "LEAKY_RELU": _Form(1, 1),
    "PRELU": _Form(2, 2),
    "TRANSPOSE_CONV": _Form(3, 4),
    "BATCH_MATMUL": _Form(2, 2, "BatchMatMulOptions"),
    "MAX_POOL_2D": _Form(1, 1, "Pool2DOptions"),
    "SPACE_TO_BATCH_ND": _Form(3, 3),
    "BATCH_TO_SPACE_ND": _Form(3, 3),
    "SELECT": _Form(3, 3),
    "SELECT_V2": _Form(3, 3),
    "PADV2": _Form(3, 3),
    "PAD": _Form(2, 2),
    "TRANSPOSE": _Form(2, 2),
    "MEAN": _Form(2, 2, "ReducerOptions"),
    "RESHAPE": _Form(1, 2),
    "EXPAND_DIMS": _Form(2, 2),
    **dict.fromkeys(("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "EQUAL"), _Form(2, 2)),
    **dict.fromkeys(("GREATER_EQUAL", "GREATER", "LESS_EQUAL", "LESS"), _Form(2, 2)),
    **dict.fromkeys(
        ("SIGN", "NEG", "ABS", "RELU", "RELU6", "RELU_N1_TO_1", "LOGICAL_NOT", "SQUEEZE", "TANH", "ELU"), _Form(1, 1)
    ),
    **dict.fromkeys(("QUANTIZE", "DEQUANTIZE", "CAST"), _Form(1, 1)),
}


_STEPS = ("strideH", "strideW", "dilationHFactor", "dilationWFactor", "filterHeight", "filterWidth")


def check_graph(graph: Graph) -> None:
    """Raises ConversionError where an op has not the inputs, outputs or options of its kind, or comes too early."""
    written_by = {tensor: i for i, op in enumerate(graph.ops) for tensor in op.outputs}
    for tensor in graph.inputs:
        if tensor in written_by:
            raise ConversionError(f'op {written_by[tensor]} writes "{tensor.name}", an input of the graph')
    for index, op in enumerate(graph.ops):
        _check_order(index, op, written_by)
        form = _FORMS.get(op.code.builtin)
        if form is not None:
            _check_form(index, op, form)


def _check_order(index: int, op: Op, written_by: dict[Tensor, int]) -> None:
    for tensor in op.inputs:
        if tensor is not None and written_by.get(tensor, -1) >= index:
            raise ConversionError(f'op {index} ({op.name}) reads "{tensor.name}" before it is computed')


def _check_form(index: int, op: Op, form: _Form) -> None:
    what = f"op {index} ({op.name})"
    present = [tensor is not None for tensor in op.inputs]
    if not form.least <= len(present) <= form.most or not all(present[: form.least]):
        wanted = f"{form.least}" if form.least == form.most else f"{form.least} to {form.most}"
        raise ConversionError(f"{what}: {sum(present)} inputs, expected {wanted}")
    if len(op.outputs) != 1:
        raise ConversionError(f"{what}: {len(op.outputs)} outputs, expected 1")
    table = "" if op.options is None else type(op.options).__name__.removesuffix("T")
    if form.options and table != form.options:
        raise ConversionError(f"{what}: options {table or 'are missing'}, expected {form.options}")
    for key in _STEPS:
        if getattr(op.options, key, 1) < 1:
            raise ConversionError(f"{what}: {key} is {getattr(op.options, key)}, expected at least 1")
