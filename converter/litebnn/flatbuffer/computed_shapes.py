"""Finds tensors whose shape is computed at run time, without reading the rest of a file."""

from typing import Any

from litebnn.flatbuffer.schema import OPERATOR_NAMES, listed, schema

# The ops whose output shape depends on the values of operands. Each op has the indices of these operands.
SHAPE_OPERANDS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(["ARG_MAX", "ARG_MIN", "BROADCAST_TO", "EXPAND_DIMS", "MULTINOMIAL", "ONE_HOT"], (1,)),
    **dict.fromkeys(["MIRROR_PAD", "PAD", "PADV2", "RESHAPE", "TILE", "TOPK_V2", "TRANSPOSE"], (1,)),
    **dict.fromkeys(["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "SEGMENT_SUM", "SPARSE_TO_DENSE"], (1,)),
    **dict.fromkeys(["MEAN", "SUM"], (1,)),
    **dict.fromkeys(["REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"], (1,)),
    **dict.fromkeys(["BATCH_TO_SPACE_ND", "SLICE", "SPACE_TO_BATCH_ND", "SPLIT_V"], (1, 2)),
    "STRIDED_SLICE": (1, 2, 3),
    **dict.fromkeys(["NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "SCATTER_ND"], (2,)),
    **dict.fromkeys([f"UNSORTED_SEGMENT_{name}" for name in ("MAX", "MIN", "PROD", "SUM")], (2,)),
    **dict.fromkeys(["CONV_3D_TRANSPOSE", "FILL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM", "SPLIT"], (0,)),
    **dict.fromkeys(["TRANSPOSE_CONV", "UNIQUE", "WHERE"], (0,)),
    "RANGE": (0, 1, 2),
}


def find_computed_shape(content: bytes) -> str | None:
    """The first op whose output shape is known only at run time, such as "RESHAPE scores"; None if there is none.

    Args:
        content: a file that a runtime has accepted, so it is valid.
    """
    model = schema.Model.GetRootAs(content, 0)
    codes = listed(model, "OperatorCodes")
    names = [OPERATOR_NAMES[max(code.BuiltinCode(), code.DeprecatedBuiltinCode())] for code in codes]
    for graph in listed(model, "Subgraphs"):
        for op in listed(graph, "Operators"):
            operands = [
                index for position, index in enumerate(listed(op, "Inputs")) if position in _shape_operands(names, op)
            ]
            if any(index >= 0 and not _is_constant(model, graph.Tensors(index)) for index in operands):
                return f"{names[op.OpcodeIndex()]} {graph.Tensors(op.Outputs(0)).Name().decode()}"
    return None


def _shape_operands(names: list[str], op: Any) -> tuple[int, ...]:
    return SHAPE_OPERANDS.get(names[op.OpcodeIndex()], ())


def _is_constant(model: Any, tensor: Any) -> bool:
    # In files over 2 GB, the data of a buffer comes after the flatbuffer. The buffer then contains only an offset.
    buffer = model.Buffers(tensor.Buffer())
    return bool(buffer.DataLength() or buffer.Size())
